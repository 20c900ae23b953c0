// Blocks of elements that are stored in 16 bits, or packed in blocks, and computed in float32.
#pragma once
#include <optional>

#include "kernels/command.h"
#include "kernels/loops.h"
#include "kernels/rules/corrected.h"
#include "kernels/rules/packed-block.h"
#include "kernels/rules/rounding.h"
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

/** A buffer that is not stored in the dtype of the computation: in 16 bits, or packed. */
struct StoredBuffer {
  double format, start;
  /** The number of the first element, for stochastic rounding. */
  double place;
};

inline Format formatOf(double number) { return static_cast<Format>(number); }
inline bool isRandom(double format) { return formatOf(format) >= Format::BF16R; }
inline bool isCoded(double format) { return formatOf(format) == Format::Q8 || formatOf(format) == Format::UQ8; }
inline bool isCorrected(double format) { return formatOf(format) == Format::BF16X; }
inline bool isBFloat(double format) { return formatOf(format) == Format::BF16 || formatOf(format) == Format::BF16R; }
inline bool isSigned(double format) { return formatOf(format) == Format::Q8; }

/** Of q8 and of uq8; none where a launch has no packed buffers. */
struct Codecs {
  Codec codecs[2];
  float leastScale;

  explicit Codecs(const Codebook* const* books) : codecs{{*books[0], true}, {*books[1], false}}, leastScale(books[0]->leastScale) {}

  const Codec& of(bool isSigned) const { return codecs[isSigned ? 0 : 1]; }
};

/** What the formats of a launch stand on: null and 0 where it has no such buffers. */
struct Stores {
  const Codecs* codecs = nullptr;
  Keys keys{0, 0};
};

/** The keys of a launch that rounds at random; others have none. */
inline Keys keysOf(const Numbers& keys) {
  return keys.count == 0 ? Keys{0, 0} : Keys{static_cast<uint32_t>(keys[0]), static_cast<uint32_t>(keys[1])};
}

/** From the addresses of two codebooks, of launches with packed buffers. */
inline std::optional<Codecs> codecsOf(const Numbers& codebooks) {
  if (codebooks.count == 0) return std::nullopt;
  const Codebook* const books[] = {address<const Codebook>(codebooks[0]), address<const Codebook>(codebooks[1])};
  return Codecs(books);
}

/** Elements `at` to `at` + n as numbers. */
template <typename T>
void widenBlock(const StoredBuffer& from, const Stores& stores, int64_t at, int64_t n, T* to) {
  if (isCorrected(from.format)) {
    if constexpr (sizeof(T) == sizeof(float)) uncorrect(address<uint8_t>(from.start), at, n, to);
  } else if (isCoded(from.format)) {
    if constexpr (sizeof(T) == sizeof(float)) {
      uint8_t* packed = address<uint8_t>(from.start);
      unpackBlocks(stores.codecs->of(isSigned(from.format)), packed, at, n, to);
    }
  } else if (isBFloat(from.format)) {
    widenElements(address<BFloat>(from.start) + at, n, to);
  } else {
    widenElements(address<Half>(from.start) + at, n, to);
  }
}

/** Numbers as elements `at` to `at` + n. What is packed lies in room for whole blocks, and is left changed. */
template <typename T>
void narrowBlock(const StoredBuffer& to, const Stores& stores, T* from, int64_t at, int64_t n) {
  if (isCorrected(to.format)) {
    if constexpr (sizeof(T) == sizeof(float)) correct(from, at, n, address<uint8_t>(to.start));
    return;
  }
  if (isCoded(to.format)) {
    if constexpr (sizeof(T) == sizeof(float)) {
      uint8_t* packed = address<uint8_t>(to.start);
      packBlocks(stores.codecs->of(isSigned(to.format)), from, stores.codecs->leastScale, packed, at, n);
    }
    return;
  }
  if (isRandom(to.format)) {
    if constexpr (sizeof(T) == sizeof(float)) {
      const Draws draws(stores.keys, static_cast<uint64_t>(to.place), at);
      if (isBFloat(to.format)) narrowAtRandom(from, draws, n, address<BFloat>(to.start) + at);
      else narrowAtRandom(from, draws, n, address<Half>(to.start) + at);
    }
    return;
  }
  switch (formatOf(to.format)) {
    case Format::BF16: return narrowElements(from, n, address<BFloat>(to.start) + at);
    case Format::F16: return narrowElements(from, n, address<Half>(to.start) + at);
    default: return narrowElements(from, n, address<T>(to.start) + at);
  }
}

}  // namespace opt::OPT_ISA
