// Launches of the update rules that were compiled ahead: all chunks of all tensors of a group are one loop.
#include "kernels/wide.h"

#include <cstring>
#include <utility>

#include "kernels/arithmetic.h"
#include "kernels/command.h"
#include "kernels/loops.h"
#include "kernels/parallel.h"
#include "kernels/stored-block.h"

namespace opt::OPT_ISA {
namespace {

/** The update of elements `begin` to `end` of one tensor. */
template <typename T>
using RuleFunction = void (*)(T* const* buffers, const T* scalars, int64_t begin, int64_t end);

struct Rule {
  RuleFunction<float> f32;
  RuleFunction<double> f64;
};

#include "rules.inc"

// Elements of a part, for rules of a handful of buffers: some 100 KB, a few microseconds.
constexpr int64_t GRAIN = 8192;
// Parts meet at multiples of this within a tensor: two threads never write one cache line of aligned memory, of 16-bit elements either.
constexpr int64_t LINE = 32;
static_assert(GRAIN % PACKED_BLOCK == 0);

// Tensors as short as a table's rows lie anywhere: memory is asked for what comes so many tensors later.
constexpr int64_t AHEAD = 4;
constexpr int64_t SHORT_BYTES = 1024;

inline void prefetch(const char* from, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(from + at, 1);
}

/** The slices of a tensor: those of the rule's buffers, then perhaps a mirror of the first one's new values. */
struct Slices {
  int64_t count;
  /** Of each slice how it is stored, and whether it is written; null where all are stored as T. */
  const double* formats;
  /** Numbers of a tensor: an address of each slice, and perhaps the place of its first element. */
  int64_t width;
  Stores stores;

  StoredBuffer at(int64_t slice, const double* own) const { return {formats[2 * slice], own[slice], own[width - 1]}; }
};

/** What is done to the gradient before the rule sees it (core's rule/rewrite.ts). A guard above 0 keeps everything as it is. */
enum class Rewrite { SCALE, CLAMP, L1, L2, GUARD };

/** Each a Rewrite and its scalar. */
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

/** Where 16-bit elements are numbers, and gradients are rewritten: a block of each buffer, which stays in the first cache. */
constexpr int64_t BLOCK = 512;

/** Asks for elements of a slice whose numbers take `width` bytes where they are not packed. */
inline void prefetchSlice(double format, double start, int64_t width, int64_t at, int64_t n) {
  if (isPacked(format)) prefetch(address<char>(start) + at / PACKED_BLOCK * PACKED_BYTES, n / PACKED_BLOCK * PACKED_BYTES);
  else prefetch(address<char>(start) + at * width, n * width);
}

/** The update of elements `from` to `to` of one tensor, a block at a time: stored in fewer bits, or with rewrites of the gradient. */
template <typename T>
void updateInBlocks(RuleFunction<T> update, const T* scalars, const double* addresses, int64_t buffers, const Slices& slices,
                    const Rewrites& rewrites, int64_t from, int64_t to) {
  alignas(64) T rooms[2][MAX_BUFFERS][BLOCK];
  T(*blocks)[BLOCK] = rooms[0], (*others)[BLOCK] = rooms[1];
  T* pointers[MAX_BUFFERS];
  const bool hasPacked = slices.stores.codecs != nullptr;
  const auto isPackedState = [&](int64_t b) { return hasPacked && isPacked(slices.formats[2 * b]) && slices.formats[2 * b + 1] != 0; };
  // Codes need not wait for their block's scale where they are stored after the next block is computed.
  const auto storeCodesOf = [&](T(*known)[BLOCK], int64_t at, int64_t n) {
    if constexpr (sizeof(T) == sizeof(float)) {
      for (int64_t b = 0; b < buffers; b++) {
        if (isPackedState(b)) storeCodes(slices.at(b, addresses), slices.stores, known[b], at, n);
      }
    }
  };
  for (int64_t at = from; at < to; at += BLOCK) {
    const int64_t n = smaller(BLOCK, to - at), next = at + BLOCK, following = smaller(BLOCK, to - next);
    const auto prefetchNext = [&](int64_t b) {
      const auto width = static_cast<int64_t>(slices.formats[2 * b] == 0 ? sizeof(T) : sizeof(Half));
      prefetchSlice(slices.formats[2 * b], addresses[b], width, next, following);
    };
    for (int64_t b = 0; b < buffers; b++) {
      pointers[b] = address<T>(addresses[b]) + at;
      // Codes keep the processor from reading ahead by itself: memory is asked for a part of the next block now, for the gradient later.
      if (hasPacked && b != 1) prefetchNext(b);
      const bool isPlain = slices.formats[2 * b] == 0;
      if (isPlain && (b != 1 || rewrites.count == 0)) continue;
      if (isPlain) std::memcpy(blocks[b], pointers[b], static_cast<size_t>(n) * sizeof(T));
      else widenBlock(slices.at(b, addresses), slices.stores, at, n, blocks[b]);
      pointers[b] = blocks[b];
    }
    for (int64_t k = 0; k < rewrites.count; k++) {
      rewriteGradient(static_cast<Rewrite>(rewrites.pairs[2 * k]), static_cast<T>(rewrites.pairs[2 * k + 1]), pointers[0], pointers[1], n);
    }
    // What is read ahead of the computation waits for memory by itself: it is asked for the next block meanwhile.
    for (int64_t b = 0; !hasPacked && b < buffers; b++) {
      if (pointers[b] == blocks[b]) prefetchNext(b);
    }
    update(pointers, scalars, 0, n);
    for (int64_t s = 0; s < slices.count; s++) {
      const bool isMirror = s == buffers;
      const double format = slices.formats[2 * s];
      if (!isMirror && (format == 0 || slices.formats[2 * s + 1] == 0)) continue;
      T* values = pointers[isMirror ? 0 : s];
      if constexpr (sizeof(T) == sizeof(float)) {
        if (isPacked(format)) {
          storeScales(slices.at(s, addresses), slices.stores, values, at, n);
          continue;
        }
      }
      narrowBlock(slices.at(s, addresses), slices.stores, values, at, n);
    }
    if (hasPacked) {
      prefetchNext(1);
      if (at > from) storeCodesOf(others, at - BLOCK, BLOCK);
      if (next >= to) storeCodesOf(blocks, at, n);
      std::swap(blocks, others);
    }
  }
}

template <typename T>
Status launchRule(Command& command, RuleFunction<T> Rule::*function) {
  const RuleFunction<T> update = RULES[command.integer()].*function;
  const int64_t scalarCount = command.integer();
  T scalars[MAX_SCALARS];
  for (int64_t s = 0; s < scalarCount; s++) scalars[s] = static_cast<T>(command.number());
  const int64_t buffers = command.integer();
  Rewrites rewrites;
  rewrites.count = command.integer();
  rewrites.pairs = command.numbers(2 * rewrites.count);
  for (int64_t k = 0; k < rewrites.count; k++) {
    const bool isGuard = static_cast<Rewrite>(rewrites.pairs[2 * k]) == Rewrite::GUARD;
    if (isGuard && rewrites.pairs[2 * k + 1] > 0) return Status::OK;
  }
  Slices slices{buffers, nullptr, buffers, {}};
  if (const int64_t stored = command.integer(); stored > 0) slices = {stored, command.numbers(2 * stored), stored, {}};
  if (slices.formats != nullptr && isRandom(slices.formats[0])) slices.width++;
  slices.stores.keys = readKeys(command);
  const std::optional<Codecs> codecs = readCodecs(command);
  if (codecs) slices.stores.codecs = &*codecs;
  const int64_t line = codecs ? PACKED_BLOCK : LINE;
  const int64_t tensors = command.integer();
  // starts[t] is the number of elements before tensor t, starts[tensors] the total.
  const double* starts = command.numbers(tensors + 1);
  const double* addresses = command.numbers(tensors * slices.width);
  parallelFor(static_cast<int64_t>(starts[tensors]), GRAIN, command.threads, [&](int64_t begin, int64_t end) {
    int64_t low = 0, high = tensors;
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (starts[middle] <= static_cast<double>(begin) ? low : high) = middle;
    }
    for (int64_t t = low; t < tensors && starts[t] < static_cast<double>(end); t++) {
      const auto start = static_cast<int64_t>(starts[t]), stop = static_cast<int64_t>(starts[t + 1]);
      const int64_t from = begin <= start ? 0 : (begin - start) / line * line;
      const int64_t to = end >= stop ? stop - start : (end - start) / line * line;
      if (from >= to) continue;
      const double* own = addresses + t * slices.width;
      if (const int64_t bytes = (stop - start) * static_cast<int64_t>(sizeof(T)); bytes <= SHORT_BYTES && t + AHEAD < tensors) {
        for (int64_t s = 0; s < slices.count; s++) prefetch(address<char>(own[AHEAD * slices.width + s]), bytes);
      }
      if (slices.formats != nullptr) {
        updateInBlocks(update, scalars, own, buffers, slices, rewrites, from, to);
        continue;
      }
      T* pointers[MAX_BUFFERS];
      for (int64_t b = 0; b < buffers; b++) pointers[b] = address<T>(own[b]);
      update(pointers, scalars, from, to);
    }
  });
  return Status::OK;
}

}  // namespace

Status runRule(Command& command) {
  return command.flag() ? launchRule<double>(command, &Rule::f64) : launchRule<float>(command, &Rule::f32);
}

}  // namespace opt::OPT_ISA
