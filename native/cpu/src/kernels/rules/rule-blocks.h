// What a rule's launch says about its buffers, and blocks of those that the rule cannot read and write as they lie in memory.
#pragma once
#include <cstring>

#include "kernels/arithmetic.h"
#include "kernels/loops.h"
#include "kernels/parallel.h"
#include "kernels/rules/stored-block.h"

namespace opt::OPT_ISA {

inline void prefetch(const char* from, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(from + at, 1);
}

/** The slices of a tensor: those of the rule's buffers, then perhaps a mirror of the first one's new values. */
struct Slices {
  int64_t count;
  /** Of each slice how it is stored, and whether it is written, or read for sums; null where all are stored as T. */
  const double* formats;
  /** Numbers of a tensor: an address of each slice, and perhaps the place of its first element. */
  int64_t width;
  Stores stores;

  StoredBuffer at(int64_t slice, const double* own) const { return {formats[2 * slice], own[slice], own[width - 1]}; }
};

/** What is done to the gradient before the rule sees it (core's rule/rewrite.ts): each a Rewrite and its scalar. A guard above 0 keeps everything as it is. */
struct Rewrites {
  int64_t count;
  const double* pairs;
};

template <typename T>
void rewriteGradient(Rewrite rewrite, T by, const T* param, T* grad, int64_t n) {
  switch (rewrite) {
    case Rewrite::SCALE:
      for (int64_t i = 0; i < n; i++) grad[i] = grad[i] * by;
      break;
    case Rewrite::CLAMP:
      for (int64_t i = 0; i < n; i++) grad[i] = max(min(grad[i], by), -by);
      break;
    case Rewrite::L1:
      OPT_INDEPENDENT
      for (int64_t i = 0; i < n; i++) {
        const T less = grad[i] - by, more = grad[i] + by;
        grad[i] = param[i] < T(0) ? less : T(0) < param[i] ? more : grad[i];
      }
      break;
    case Rewrite::L2:
      OPT_INDEPENDENT
      for (int64_t i = 0; i < n; i++) grad[i] = fma(by, param[i], grad[i]);
      break;
    case Rewrite::GUARD: break;
  }
}

/** A block stays in the first cache. */
constexpr int64_t BLOCK = 512;

/** Asks for elements of a slice whose numbers take `width` bytes where they are not packed. */
inline void prefetchSlice(double format, double start, int64_t width, int64_t at, int64_t n) {
  const int64_t bytes = isCoded(format) ? PACKED_BYTES : isCorrected(format) ? CORRECTED_BYTES : 0;
  if (bytes > 0) prefetch(address<char>(start) + at / PACKED_BLOCK * bytes, n / PACKED_BLOCK * bytes);
  else prefetch(address<char>(start) + at * width, n * width);
}

/**
 * The first `slots` buffers of a tensor, a block at a time: `at` points to numbers, in memory where they lie there as T and in rooms
 * where they are stored in fewer bits, or are gradients to rewrite.
 */
template <typename T, int SLOTS>
class RuleBlocks {
 public:
  RuleBlocks(const double* addresses, int64_t slots, int64_t buffers, const Slices& slices, const Rewrites& rewrites)
      : addresses_(addresses), slots_(slots), buffers_(buffers), slices_(slices), rewrites_(rewrites) {
    bool isPlain = rewrites.count == 0 && slices.count == buffers;
    for (int64_t b = 0; b < slots; b++) {
      starts_[b] = address<T>(addresses[b]);
      isPlain = isPlain && slices.formats[2 * b] == 0;
    }
    isPlain_ = isPlain;
  }

  T* at[SLOTS];

  /** Elements `first` to `first` + n, of which `following` more will come next. */
  void load(int64_t first, int64_t n, int64_t following) {
    for (int64_t b = 0; b < slots_; b++) at[b] = starts_[b] + first;
    if (!isPlain_) loadRooms(first, n, following);
  }

  /** What is written and lies in rooms goes where it is stored, and the first buffer's new values to its mirror. */
  void store(int64_t first, int64_t n) {
    if (!isPlain_) storeRooms(first, n);
  }

 private:
  OPT_APART void loadRooms(int64_t first, int64_t n, int64_t following) {
    for (int64_t b = 0; b < slots_; b++) {
      const bool isPlain = slices_.formats[2 * b] == 0;
      if (isPlain && (b != 1 || rewrites_.count == 0)) continue;
      if (isPlain) std::memcpy(rooms_[b], at[b], static_cast<size_t>(n) * sizeof(T));
      else widenBlock(slices_.at(b, addresses_), slices_.stores, first, n, rooms_[b]);
      at[b] = rooms_[b];
      // What is read ahead of the computation waits for memory by itself: it is asked for the next block meanwhile.
      prefetchSlice(slices_.formats[2 * b], addresses_[b], isPlain ? sizeof(T) : sizeof(Half), first + n, following);
    }
    for (int64_t k = 0; k < rewrites_.count; k++) {
      rewriteGradient(static_cast<Rewrite>(rewrites_.pairs[2 * k]), static_cast<T>(rewrites_.pairs[2 * k + 1]), at[0], at[1], n);
    }
  }

  OPT_APART void storeRooms(int64_t first, int64_t n) {
    for (int64_t s = 0; s < slices_.count; s++) {
      const bool isMirror = s == buffers_;
      if (!isMirror && (s >= slots_ || slices_.formats[2 * s] == 0 || slices_.formats[2 * s + 1] == 0)) continue;
      narrowBlock(slices_.at(s, addresses_), slices_.stores, at[isMirror ? 0 : s], first, n);
    }
  }

  alignas(64) T rooms_[SLOTS][BLOCK];
  T* starts_[SLOTS];
  bool isPlain_;
  const double* addresses_;
  int64_t slots_, buffers_;
  const Slices& slices_;
  const Rewrites& rewrites_;
};

}  // namespace opt::OPT_ISA
