// Blocks of state in 8 bits (core's rule/codebook.ts says what the codes mean): 256 elements and their scale.
#pragma once
#include <cstdint>
#include <cstring>

#include "kernels/loops.h"
#include "kernels/stored.h"
#include "kernels/vector.h"

namespace opt::OPT_ISA {

constexpr int64_t PACKED_BLOCK = 256;

/** The numbers of core's Codebook, in the order of packages/kernels-cpu/src/codebook.ts. */
struct Codebook {
  float edges[8], slope[9], offset[9], cap[9], step[9], start[9], values[256], leastScale;
};

/** Blocks one after the other, of which the last may be cut: a scale, then its codes. */
struct PackedBlock {
  float* scale;
  uint8_t* codes;

  PackedBlock(uint8_t* start, int64_t block)
      : scale(reinterpret_cast<float*>(start + block * (PACKED_BLOCK + 4))), codes(reinterpret_cast<uint8_t*>(scale + 1)) {}
};

/** Ordered by magnitude, a positive one of two above the negative one. */
inline uint32_t keyOf(float x) {
  const uint32_t bits = wordOf(x);
  return (bits << 1 | bits >> 31) ^ 1;
}

inline uint32_t greatestKey(const float* block, int64_t n) {
#if defined(__AVX512F__)
  __m512i most = _mm512_setzero_si512();
  for (int64_t i = 0; i < n; i += 16) {
    const __m512i key = _mm512_xor_si512(_mm512_rol_epi32(_mm512_castps_si512(_mm512_loadu_ps(block + i)), 1), _mm512_set1_epi32(1));
    most = _mm512_max_epu32(most, key);
  }
  return _mm512_reduce_max_epu32(most);
#else
  uint32_t most = 0;
  for (int64_t i = 0; i < n; i++) most = keyOf(block[i]) > most ? keyOf(block[i]) : most;
  return most;
#endif
}

/** What a block is divided by: its finite value of largest magnitude, for signed codes its negative. Others become 0. */
inline float scaleBlock(float* block, int64_t n, bool isSigned, float least) {
  constexpr uint32_t INFINITE = 0xff000000;
  uint32_t key = greatestKey(block, n);
  if (key >= INFINITE) {
    for (int64_t i = 0; i < n; i++) block[i] = keyOf(block[i]) < INFINITE ? block[i] : 0;
    key = greatestKey(block, n);
  }
  const float magnitude = fromWord(key >> 1);
  const bool isPositive = (key & 1) != 0;
  return magnitude < least ? 0 : isPositive == isSigned ? -magnitude : magnitude;
}

#if defined(__AVX512F__)
/** The codebook in registers: segments of magnitudes by their exponent, of which each holds one edge at most. */
class Codec {
 public:
  Codec(const Codebook& book, bool isSigned) : isSigned_(isSigned) {
    alignas(64) float edge[32], tables[5][16] = {};
    alignas(64) int32_t segment[32];
    for (int exponent = LEAST_EXPONENT; exponent < LEAST_EXPONENT + 32; exponent++) {
      const float low = fromWord(static_cast<uint32_t>(exponent) << 23), high = 2 * low;
      int32_t below = 0;
      float within = __builtin_inff();
      for (const float known : book.edges) {
        below += known <= low;
        if (known > low && known < high) within = known;
      }
      edge[exponent & 31] = within;
      segment[exponent & 31] = below;
    }
    for (int e = 0; e < 9; e++) {
      tables[0][e] = book.slope[e];
      tables[1][e] = book.offset[e];
      tables[2][e] = book.cap[e];
      tables[3][(127 + e) & 15] = book.step[e];
      tables[4][(127 + e) & 15] = book.start[e];
    }
    for (int half = 0; half < 2; half++) {
      edge_[half] = _mm512_load_ps(edge + 16 * half);
      segment_[half] = _mm512_load_si512(segment + 16 * half);
    }
    slope_ = _mm512_load_ps(tables[0]);
    offset_ = _mm512_load_ps(tables[1]);
    cap_ = _mm512_load_ps(tables[2]);
    step_ = _mm512_load_ps(tables[3]);
    start_ = _mm512_load_ps(tables[4]);
  }

  bool isSigned() const { return isSigned_; }

  /** `n` values, in room for a multiple of 16. */
  void unpack(const uint8_t* codes, float scale, int64_t n, float* to) const {
    if (isSigned_) unpackAs<true>(codes, scale, n, to);
    else unpackAs<false>(codes, scale, n, to);
  }

  void pack(const float* from, float scale, int64_t n, uint8_t* codes) const {
    if (isSigned_) packAs<true>(from, scale, n, codes);
    else packAs<false>(from, scale, n, codes);
  }

 private:
  template <bool SIGNED>
  void unpackAs(const uint8_t* codes, float scale, int64_t n, float* to) const {
    const __m512 scales = _mm512_set1_ps(scale);
    const __m512i one = _mm512_set1_epi32(1), signBit = _mm512_set1_epi32(static_cast<int>(0x80000000u));
    for (int64_t i = 0; i < n; i += 16) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + i));
      const __m512i code = SIGNED ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes);
      const __m512i magnitude = SIGNED ? _mm512_abs_epi32(code) : code;
      const __m512i place = _mm512_add_epi32(SIGNED ? _mm512_add_epi32(magnitude, magnitude) : magnitude, one);
      const __m512i exponent = _mm512_srli_epi32(_mm512_castps_si512(_mm512_cvtepi32_ps(place)), 23);
      const __m512 product = _mm512_mul_ps(_mm512_cvtepi32_ps(magnitude), _mm512_permutexvar_ps(exponent, step_));
      __m512 value = _mm512_add_ps(product, _mm512_permutexvar_ps(exponent, start_));
      if (SIGNED) value = _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(value), _mm512_and_si512(code, signBit)));
      _mm512_storeu_ps(to + i, _mm512_mul_ps(value, scales));
    }
  }

  template <bool SIGNED>
  void packAs(const float* from, float scale, int64_t n, uint8_t* codes) const {
    const __m512 inverse = _mm512_set1_ps(scale == 0 ? 0 : 1 / scale);
    const __m512 least = _mm512_set1_ps(fromWord(static_cast<uint32_t>(LEAST_EXPONENT) << 23));
    for (int64_t i = 0; i < n; i += 16) {
      const __m512 x = _mm512_mul_ps(_mm512_loadu_ps(from + i), inverse);
      const __m512 magnitude = SIGNED ? _mm512_abs_ps(x) : _mm512_max_ps(x, _mm512_setzero_ps());
      const __m512i exponent = _mm512_srli_epi32(_mm512_castps_si512(_mm512_max_ps(magnitude, least)), 23);
      const __mmask16 above = _mm512_cmp_ps_mask(magnitude, _mm512_permutex2var_ps(edge_[0], exponent, edge_[1]), _CMP_GE_OQ);
      __m512i e = _mm512_permutex2var_epi32(segment_[0], exponent, segment_[1]);
      e = _mm512_mask_add_epi32(e, above, e, _mm512_set1_epi32(1));
      const __m512 product = _mm512_mul_ps(magnitude, _mm512_permutexvar_ps(e, slope_));
      const __m512 place = _mm512_min_ps(_mm512_add_ps(product, _mm512_permutexvar_ps(e, offset_)), _mm512_permutexvar_ps(e, cap_));
      const __m512i code = _mm512_cvttps_epi32(place);
      if (SIGNED) {
        const __mmask16 negative = _mm512_movepi32_mask(_mm512_castps_si512(x));
        const __m512i both = _mm512_mask_sub_epi32(code, negative, _mm512_setzero_si512(), code);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + i), _mm512_cvtsepi32_epi8(both));
      } else {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + i), _mm512_cvtepi32_epi8(code));
      }
    }
  }

  // 2^-24: all of the codes' edges lie above.
  static constexpr int LEAST_EXPONENT = 103;

  const bool isSigned_;
  __m512 edge_[2], slope_, offset_, cap_, step_, start_;
  __m512i segment_[2];
};
#else
/** The codebook, element by element: compilers make selections of its comparisons. */
class Codec {
 public:
  Codec(const Codebook& book, bool isSigned) : book_(book), isSigned_(isSigned) {}

  bool isSigned() const { return isSigned_; }

  void unpack(const uint8_t* codes, float scale, int64_t n, float* to) const {
    for (int64_t i = 0; i < n; i++) to[i] = book_.values[codes[i]] * scale;
  }

  void pack(const float* from, float scale, int64_t n, uint8_t* codes) const {
    if (isSigned_) packAs<true>(from, scale, n, codes);
    else packAs<false>(from, scale, n, codes);
  }

 private:
  template <bool SIGNED>
  void packAs(const float* from, float scale, int64_t n, uint8_t* codes) const {
    const float inverse = scale == 0 ? 0 : 1 / scale;
    OPT_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
      const float x = from[i] * inverse;
      const float magnitude = x > 0 ? x : SIGNED ? -x : 0;
      float slope = book_.slope[0], offset = book_.offset[0], cap = book_.cap[0];
      for (int e = 0; e < 8; e++) {
        const bool above = magnitude >= book_.edges[e];
        slope = above ? book_.slope[e + 1] : slope;
        offset = above ? book_.offset[e + 1] : offset;
        cap = above ? book_.cap[e + 1] : cap;
      }
      const float place = magnitude * slope + offset;
      const auto code = static_cast<int32_t>(place < cap ? place : cap);
      codes[i] = static_cast<uint8_t>(SIGNED ? (x < 0 ? -code : code < 127 ? code : 127) : code);
    }
  }

  const Codebook& book_;
  const bool isSigned_;
};
#endif

/** Elements `at` to `at` + n as numbers; `at` begins a block. */
inline void unpackBlocks(const Codec& codec, uint8_t* from, int64_t at, int64_t n, float* to) {
  for (int64_t done = 0; done < n; done += PACKED_BLOCK) {
    const int64_t count = n - done < PACKED_BLOCK ? n - done : PACKED_BLOCK;
    const PackedBlock block(from, (at + done) / PACKED_BLOCK);
    const uint8_t* codes = block.codes;
    uint8_t whole[PACKED_BLOCK];
    if (count < PACKED_BLOCK) {
      std::memset(whole, 0, sizeof whole);
      std::memcpy(whole, codes, static_cast<size_t>(count));
      codes = whole;
    }
    codec.unpack(codes, *block.scale, count, to + done);
  }
}

/** Numbers, in room for whole vectors, as elements `at` to `at` + n. */
inline void packBlocks(const Codec& codec, float* from, float least, uint8_t* to, int64_t at, int64_t n) {
  for (int64_t done = 0; done < n; done += PACKED_BLOCK) {
    const int64_t count = n - done < PACKED_BLOCK ? n - done : PACKED_BLOCK, padded = (count + 15) / 16 * 16;
    float* values = from + done;
    const PackedBlock block(to, (at + done) / PACKED_BLOCK);
    uint8_t whole[PACKED_BLOCK];
    for (int64_t i = count; i < padded; i++) values[i] = 0;
    *block.scale = scaleBlock(values, padded, codec.isSigned(), least);
    codec.pack(values, *block.scale, padded, count < PACKED_BLOCK ? whole : block.codes);
    if (count < PACKED_BLOCK) std::memcpy(block.codes, whole, static_cast<size_t>(count));
  }
}

}  // namespace opt::OPT_ISA
