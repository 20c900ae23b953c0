// Blocks of elements that are stored in 16 bits, or packed in 8, and computed in float32.
#pragma once
#include <optional>

#include "kernels/command.h"
#include "kernels/loops.h"
#include "kernels/packed-block.h"
#include "kernels/stored.h"

namespace opt::OPT_ISA {

template <typename Stored, typename T>
void widenElements(const Stored* from, int64_t n, T* to) {
  OPT_INDEPENDENT
  for (int64_t i = 0; i < n; i++) to[i] = static_cast<T>(widen(from[i]));
}

template <typename Stored, typename T>
void narrowElements(const T* from, int64_t n, Stored* to) {
  OPT_INDEPENDENT
  for (int64_t i = 0; i < n; i++) to[i] = convert<T, Stored>(from[i]);
}

/** A buffer that is not stored in the dtype of the computation: a DType of 16 bits, or a PackedDType. */
struct StoredBuffer {
  double format, start;
};

inline bool isPacked(double format) { return format >= static_cast<double>(PackedDType::Q8); }
inline bool isSigned(double format) { return static_cast<PackedDType>(format) == PackedDType::Q8; }

/** Of q8 and of uq8; none where a launch has no packed buffers. */
struct Codecs {
  Codec codecs[2];
  float leastScale;

  explicit Codecs(const Codebook* const* books) : codecs{{*books[0], true}, {*books[1], false}}, leastScale(books[0]->leastScale) {}

  const Codec& of(double format) const { return codecs[isSigned(format) ? 0 : 1]; }
};

/** What comes in a command where buffers may be packed: a flag, and perhaps the addresses of two codebooks. */
inline std::optional<Codecs> readCodecs(Command& command) {
  if (!command.flag()) return std::nullopt;
  const Codebook* const signedBook = command.pointer<const Codebook>();
  const Codebook* const books[] = {signedBook, command.pointer<const Codebook>()};
  return Codecs(books);
}


/** Elements `at` to `at` + n as numbers. */
template <typename T>
void widenBlock(const StoredBuffer& from, const Codecs* codecs, int64_t at, int64_t n, T* to) {
  if (isPacked(from.format)) {
    if constexpr (sizeof(T) == sizeof(float)) {
      uint8_t* packed = address<uint8_t>(from.start);
      unpackBlocks(codecs->of(from.format), packed, at, n, to);
    }
  } else if (static_cast<DType>(from.format) == DType::BF16) {
    widenElements(address<BFloat>(from.start) + at, n, to);
  } else {
    widenElements(address<Half>(from.start) + at, n, to);
  }
}

/** Numbers as elements `at` to `at` + n. What is packed lies in room for whole vectors, and is left changed. */
template <typename T>
void narrowBlock(const StoredBuffer& to, const Codecs* codecs, T* from, int64_t at, int64_t n) {
  if (isPacked(to.format)) {
    if constexpr (sizeof(T) == sizeof(float)) {
      uint8_t* packed = address<uint8_t>(to.start);
      packBlocks(codecs->of(to.format), from, codecs->leastScale, packed, at, n);
    }
    return;
  }
  switch (static_cast<DType>(to.format)) {
    case DType::BF16: return narrowElements(from, n, address<BFloat>(to.start) + at);
    case DType::F16: return narrowElements(from, n, address<Half>(to.start) + at);
    default: return narrowElements(from, n, address<T>(to.start) + at);
  }
}

}  // namespace opt::OPT_ISA
