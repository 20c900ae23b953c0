// Blocks of state in 8 bits (core's rule/codebook.ts says what the codes mean): 256 elements and their scale.
#pragma once
#include <cstdint>
#include <cstring>

#include "kernels/rules/codec.h"
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

/** The greatest key of numbers that come Codec::STEP at a time. */
#if defined(__AVX512F__)
class GreatestKey {
 public:
  OPT_INLINE void take(const float* numbers) {
    const __m512i bits = _mm512_castps_si512(_mm512_loadu_ps(numbers));
    above_ = _mm512_max_epi32(above_, bits);
    below_ = _mm512_max_epu32(below_, bits);
  }

  OPT_INLINE uint32_t get() const {
    const uint32_t a = keyOf(fromWord(static_cast<uint32_t>(_mm512_reduce_max_epi32(above_))));
    const uint32_t b = keyOf(fromWord(_mm512_reduce_max_epu32(below_)));
    return a > b ? a : b;
  }

 private:
  // As whole numbers the greatest with a sign, or without, is the one of largest magnitude above zero, or below it.
  __m512i above_ = _mm512_set1_epi32(static_cast<int>(0x80000000u)), below_ = _mm512_setzero_si512();
};
#elif defined(__AVX2__)
class GreatestKey {
 public:
  OPT_INLINE void take(const float* numbers) {
    for (int64_t i = 0; i < Codec::STEP; i += 8) {
      const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(numbers + i));
      above_ = _mm256_max_epi32(above_, bits);
      below_ = _mm256_max_epu32(below_, bits);
    }
  }

  OPT_INLINE uint32_t get() const {
    alignas(32) float lanes[16];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), above_);
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes + 8), below_);
    uint32_t most = 0;
    for (const float each : lanes) most = keyOf(each) > most ? keyOf(each) : most;
    return most;
  }

 private:
  // As above: the greatest with a sign, and without.
  __m256i above_ = _mm256_set1_epi32(static_cast<int>(0x80000000u)), below_ = _mm256_setzero_si256();
};
#else
class GreatestKey {
 public:
  OPT_APART void take(const float* numbers) {
    for (int64_t i = 0; i < Codec::STEP; i++) most_ = keyOf(numbers[i]) > most_ ? keyOf(numbers[i]) : most_;
  }

  uint32_t get() const { return most_; }

 private:
  uint32_t most_ = 0;
};
#endif

OPT_APART inline uint32_t greatestKey(const float* block) {
  GreatestKey greatest;
  for (int64_t i = 0; i < PACKED_BLOCK; i += Codec::STEP) greatest.take(block + i);
  return greatest.get();
}

/** From here on keys are those of infinities and of what is no number. */
constexpr uint32_t INFINITE_KEY = 0xff000000;

/** Makes 0 of what is not finite, and gives the greatest key of the others. */
OPT_APART inline uint32_t keepFinite(float* block) {
  for (int64_t i = 0; i < PACKED_BLOCK; i++) block[i] = keyOf(block[i]) < INFINITE_KEY ? block[i] : 0;
  return greatestKey(block);
}

/** What a block is divided by, of its greatest key: its finite value of largest magnitude, for signed codes its negative. Others become 0. */
inline float scaleBlock(uint32_t key, float* block, bool isSigned, float least) {
  if (key >= INFINITE_KEY) [[unlikely]] key = keepFinite(block);
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
      unpackBlock(codec, block.codes, *block.scale, to + done);
    } else {
      uint8_t whole[PACKED_BLOCK] = {};
      std::memcpy(whole, block.codes, static_cast<size_t>(count));
      unpackBlock(codec, whole, *block.scale, to + done);
    }
  }
}

/** Numbers, in room for whole blocks of which the rest becomes 0, as elements `at` to `at` + n. */
inline void packBlocks(const Codec& codec, float* from, float least, uint8_t* to, int64_t at, int64_t n) {
  for (int64_t done = 0; done < n; done += PACKED_BLOCK) {
    const int64_t count = n - done < PACKED_BLOCK ? n - done : PACKED_BLOCK;
    for (int64_t i = n; i < done + PACKED_BLOCK; i++) from[i] = 0;
    const PackedBlock block(to, (at + done) / PACKED_BLOCK);
    *block.scale = scaleBlock(greatestKey(from + done), from + done, codec.isSigned(), least);
    if (count == PACKED_BLOCK) {
      packBlock(codec, from + done, *block.scale, block.codes);
    } else {
      uint8_t whole[PACKED_BLOCK];
      packBlock(codec, from + done, *block.scale, whole);
      std::memcpy(block.codes, whole, static_cast<size_t>(count));
    }
  }
}

}  // namespace opt::OPT_ISA
