// Blocks of state in 8 bits (core's rule/codebook.ts says what the codes mean): 256 elements and their scale.
#pragma once
#include <cstdint>
#include <cstring>

#include "kernels/codec.h"
#include "kernels/stored.h"
#include "kernels/vector.h"

namespace opt::OPT_ISA {

constexpr int64_t PACKED_BYTES = 4 + PACKED_BLOCK;

/** Blocks one after the other, of which the last may be cut: a scale, then its codes. */
struct PackedBlock {
  float* scale;
  uint8_t* codes;

  PackedBlock(uint8_t* start, int64_t block)
      : scale(reinterpret_cast<float*>(start + block * PACKED_BYTES)), codes(reinterpret_cast<uint8_t*>(scale + 1)) {}
};

/** Ordered by magnitude, a positive one of two above the negative one. */
inline uint32_t keyOf(float x) {
  const uint32_t bits = wordOf(x);
  return (bits << 1 | bits >> 31) ^ 1;
}

inline uint32_t greatestKey(const float* block) {
#if defined(__AVX512F__)
  // As whole numbers the greatest with a sign, or without, is the one of largest magnitude above zero, or below it.
  __m512i above = _mm512_castps_si512(_mm512_loadu_ps(block)), below = above;
  for (int64_t i = 16; i < PACKED_BLOCK; i += 16) {
    const __m512i bits = _mm512_castps_si512(_mm512_loadu_ps(block + i));
    above = _mm512_max_epi32(above, bits);
    below = _mm512_max_epu32(below, bits);
  }
  const uint32_t a = keyOf(fromWord(static_cast<uint32_t>(_mm512_reduce_max_epi32(above))));
  const uint32_t b = keyOf(fromWord(_mm512_reduce_max_epu32(below)));
  return a > b ? a : b;
#else
  uint32_t most = 0;
  for (int64_t i = 0; i < PACKED_BLOCK; i++) most = keyOf(block[i]) > most ? keyOf(block[i]) : most;
  return most;
#endif
}

/** What a block is divided by: its finite value of largest magnitude, for signed codes its negative. Others become 0. */
inline float scaleBlock(float* block, bool isSigned, float least) {
  constexpr uint32_t INFINITE = 0xff000000;
  uint32_t key = greatestKey(block);
  if (key >= INFINITE) {
    for (int64_t i = 0; i < PACKED_BLOCK; i++) block[i] = keyOf(block[i]) < INFINITE ? block[i] : 0;
    key = greatestKey(block);
  }
  // In whole numbers, because no processor can foresee which sign it has.
  const uint32_t magnitude = key >> 1, sign = (key ^ (isSigned ? 0 : 1)) << 31;
  return magnitude < wordOf(least) ? 0 : fromWord(magnitude | sign);
}

/** Elements `at` to `at` + n as numbers, in room for whole blocks; `at` begins a block. */
inline void unpackBlocks(const Codec& codec, uint8_t* from, int64_t at, int64_t n, float* to) {
  for (int64_t done = 0; done < n; done += PACKED_BLOCK) {
    const int64_t count = n - done < PACKED_BLOCK ? n - done : PACKED_BLOCK;
    const PackedBlock block(from, (at + done) / PACKED_BLOCK);
    if (count == PACKED_BLOCK) {
      codec.unpack(block.codes, *block.scale, to + done);
    } else {
      uint8_t whole[PACKED_BLOCK] = {};
      std::memcpy(whole, block.codes, static_cast<size_t>(count));
      codec.unpack(whole, *block.scale, to + done);
    }
  }
}

/** The scales of what packBlocks will make elements `at` to `at` + n: numbers in room for whole blocks, of which the rest becomes 0. */
inline void scaleBlocks(const Codec& codec, float* from, float least, uint8_t* to, int64_t at, int64_t n) {
  for (int64_t done = 0; done < n; done += PACKED_BLOCK) {
    for (int64_t i = n; i < done + PACKED_BLOCK; i++) from[i] = 0;
    *PackedBlock(to, (at + done) / PACKED_BLOCK).scale = scaleBlock(from + done, codec.isSigned(), least);
  }
}

/** The codes of numbers whose scales are stored. */
inline void packBlocks(const Codec& codec, const float* from, uint8_t* to, int64_t at, int64_t n) {
  for (int64_t done = 0; done < n; done += PACKED_BLOCK) {
    const int64_t count = n - done < PACKED_BLOCK ? n - done : PACKED_BLOCK;
    const PackedBlock block(to, (at + done) / PACKED_BLOCK);
    if (count == PACKED_BLOCK) {
      codec.pack(from + done, *block.scale, block.codes);
    } else {
      uint8_t whole[PACKED_BLOCK];
      codec.pack(from + done, *block.scale, whole);
      std::memcpy(block.codes, whole, static_cast<size_t>(count));
    }
  }
}

}  // namespace opt::OPT_ISA
