// State in 24 bits (core's rule/corrected.ts says what the bits mean): 256 elements of 16 bits, then 8 bits of correction for each.
#pragma once
#include <cstdint>

#include "kernels/loops.h"
#include "kernels/rules/codec.h"
#include "kernels/vector.h"

namespace opt::OPT_ISA {

constexpr int64_t CORRECTED_BYTES = 3 * PACKED_BLOCK;

/** Elements of one block. */
struct CorrectedBlock {
  uint16_t* high;
  uint8_t* correction;

  CorrectedBlock(uint8_t* start, int64_t block)
      : high(reinterpret_cast<uint16_t*>(start + block * CORRECTED_BYTES)),
        correction(start + block * CORRECTED_BYTES + 2 * PACKED_BLOCK) {}

  float get(int64_t i) const {
    const auto further = static_cast<uint32_t>(static_cast<int8_t>(correction[i]));
    return fromWord((static_cast<uint32_t>(high[i]) << 16) + (further << 8));
  }

  void set(int64_t i, float number) const {
    const uint32_t word = wordOf(number);
    const uint32_t w = (word & 0x7fffffffu) > 0x7f800000u ? 0x7fc000u : (word + 0x7f + (word >> 8 & 1)) >> 8;
    high[i] = static_cast<uint16_t>((w + 0x80) >> 8);
    correction[i] = static_cast<uint8_t>(w);
  }
};

#if defined(__AVX2__)
/** The upper 24 bits of eight numbers. */
OPT_INLINE __m256i upper24(const float* from) {
  const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(words, 8), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(words, odd), _mm256_set1_epi32(0x7f));
  const __m256 numbers = _mm256_castsi256_ps(words);
  const __m256 isNone = _mm256_cmp_ps(numbers, numbers, _CMP_UNORD_Q);
  const __m256 none = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
  return _mm256_srli_epi32(_mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(rounded), none, isNone)), 8);
}

/** A whole block as numbers. */
OPT_APART inline void uncorrectBlock(const CorrectedBlock& block, float* to) {
  for (int64_t i = 0; i < PACKED_BLOCK; i += 8) {
    const __m256i high = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block.high + i)));
    const __m256i further = _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(block.correction + i)));
    const __m256i words = _mm256_add_epi32(_mm256_slli_epi32(high, 16), _mm256_slli_epi32(further, 8));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), words);
  }
}

OPT_APART inline void correctBlock(const float* from, const CorrectedBlock& block) {
  const __m256i half = _mm256_set1_epi32(0x80), low = _mm256_set1_epi32(0xff), upper = _mm256_set1_epi32(0xffff);
  // Packing puts halves of its operands side by side: dwords 0 and 4 are the first vector's.
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  for (int64_t i = 0; i < PACKED_BLOCK; i += 32) {
    __m256i corrections[2];
    for (int64_t k = 0; k < 2; k++) {
      const __m256i a = upper24(from + i + 16 * k), b = upper24(from + i + 16 * k + 8);
      const auto highOf = [&](__m256i w) { return _mm256_and_si256(_mm256_srli_epi32(_mm256_add_epi32(w, half), 8), upper); };
      const __m256i high = _mm256_permute4x64_epi64(_mm256_packus_epi32(highOf(a), highOf(b)), 0xd8);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(block.high + i + 16 * k), high);
      corrections[k] = _mm256_packus_epi32(_mm256_and_si256(a, low), _mm256_and_si256(b, low));
    }
    const __m256i bytes = _mm256_packus_epi16(corrections[0], corrections[1]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(block.correction + i), _mm256_permutevar8x32_epi32(bytes, order));
  }
}
#else
OPT_APART inline void uncorrectBlock(const CorrectedBlock& block, float* to) {
  OPT_INDEPENDENT
  for (int64_t i = 0; i < PACKED_BLOCK; i++) to[i] = block.get(i);
}

OPT_APART inline void correctBlock(const float* from, const CorrectedBlock& block) {
  OPT_INDEPENDENT
  for (int64_t i = 0; i < PACKED_BLOCK; i++) block.set(i, from[i]);
}
#endif

/** Elements `at` to `at` + n as numbers; `at` begins a block. */
inline void uncorrect(uint8_t* packed, int64_t at, int64_t n, float* to) {
  for (int64_t done = 0; done < n; done += PACKED_BLOCK) {
    const CorrectedBlock block(packed, (at + done) / PACKED_BLOCK);
    if (n - done >= PACKED_BLOCK) uncorrectBlock(block, to + done);
    else for (int64_t i = 0; i < n - done; i++) to[done + i] = block.get(i);
  }
}

/** Numbers as elements `at` to `at` + n. */
inline void correct(const float* from, int64_t at, int64_t n, uint8_t* packed) {
  for (int64_t done = 0; done < n; done += PACKED_BLOCK) {
    const CorrectedBlock block(packed, (at + done) / PACKED_BLOCK);
    if (n - done >= PACKED_BLOCK) correctBlock(from + done, block);
    else for (int64_t i = 0; i < n - done; i++) block.set(i, from[done + i]);
  }
}

}  // namespace opt::OPT_ISA
