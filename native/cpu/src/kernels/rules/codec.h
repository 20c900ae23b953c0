// The codes of state in 8 bits (core's rule/codebook.ts says what they mean): 256 at a time to numbers, and back.
#pragma once
#include <cstdint>

#include "kernels/loops.h"
#include "kernels/stored.h"
#include "kernels/vector.h"

namespace opt::OPT_ISA {

constexpr int64_t PACKED_BLOCK = 256;
/** What becomes codes at a time. */
constexpr int64_t PACKED_PIECE = 64;

/** The numbers of core's Codebook, in the order of packages/kernels-cpu/src/codebook.ts. */
struct Codebook {
  float edges[8], slope[9], offset[9], cap[9], step[9], start[9], values[256], leastScale;
};

#if defined(__AVX512F__)
/** The codebook in registers, each of its tables one that is looked up by lane. */
class Codec {
 public:
  Codec(const Codebook& book, bool isSigned) : isSigned_(isSigned) {
    alignas(64) float tables[5][16] = {};
    alignas(64) uint32_t segments[16];
    for (uint32_t pair = 0; pair < 16; pair++) {
      const uint32_t low = LEAST + (pair << 24), high = low + (1u << 24);
      uint32_t below = 0, edge = high;
      for (const float known : book.edges) {
        below += wordOf(known) <= low;
        if (wordOf(known) > low && wordOf(known) < high) edge = wordOf(known);
      }
      segments[pair] = ((below + 1) << 24) - edge;
    }
    for (int e = 0; e < 9; e++) {
      const int zeros = (isSigned ? 32 - e : 31 - e) & 15;
      tables[0][e] = book.slope[e];
      tables[1][e] = book.offset[e];
      tables[2][e] = book.cap[e];
      tables[3][zeros] = book.step[e];
      tables[4][zeros] = book.start[e];
    }
    segment_ = _mm512_load_si512(segments);
    slope_ = _mm512_load_ps(tables[0]);
    offset_ = _mm512_load_ps(tables[1]);
    cap_ = _mm512_load_ps(tables[2]);
    step_ = _mm512_load_ps(tables[3]);
    start_ = _mm512_load_ps(tables[4]);
  }

  bool isSigned() const { return isSigned_; }

  /** Numbers that are unpacked at a time. */
  static constexpr int64_t STEP = 16;

  /** STEP numbers. Segments by the zeros before the highest bit. */
  template <bool SIGNED>
  OPT_INLINE void unpackStep(const uint8_t* codes, float scale, float* to) const {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes));
    const __m512i code = SIGNED ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes);
    const __m512i zeros = _mm512_lzcnt_epi32(SIGNED ? _mm512_abs_epi32(code) : _mm512_add_epi32(code, _mm512_set1_epi32(1)));
    const __m512 product = _mm512_mul_ps(_mm512_cvtepi32_ps(code), _mm512_permutexvar_ps(zeros, step_));
    __m512 start = _mm512_permutexvar_ps(zeros, start_);
    if (SIGNED) start = withSign<XOR>(start, _mm512_castsi512_ps(code));
    _mm512_storeu_ps(to, _mm512_mul_ps(_mm512_add_ps(product, start), _mm512_set1_ps(scale)));
  }

  /** A piece, by 1 / scale or 0. */
  template <bool SIGNED>
  OPT_INLINE void packPiece(const float* from, float inverseScale, uint8_t* codes) const {
    const __m512 inverse = _mm512_set1_ps(inverseScale);
    // Packing puts quarters of the four vectors side by side: dwords 0, 4, 8 and 12 are the first vector's.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i a = codesOf<SIGNED>(_mm512_mul_ps(_mm512_loadu_ps(from), inverse));
    const __m512i b = codesOf<SIGNED>(_mm512_mul_ps(_mm512_loadu_ps(from + 16), inverse));
    const __m512i c = codesOf<SIGNED>(_mm512_mul_ps(_mm512_loadu_ps(from + 32), inverse));
    const __m512i d = codesOf<SIGNED>(_mm512_mul_ps(_mm512_loadu_ps(from + 48), inverse));
    // Saturated: 128 becomes 127, and of unsigned codes what is below 0 becomes 0.
    const __m512i bytes = SIGNED ? _mm512_packs_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d))
                                 : _mm512_packus_epi16(_mm512_packus_epi32(a, b), _mm512_packus_epi32(c, d));
    _mm512_storeu_si512(codes, _mm512_permutexvar_epi32(order, bytes));
  }

 private:
  /** Segments by pairs of exponents, of which each has one edge at most: a word that carries into the next segment from the edge on. */
  template <bool SIGNED>
  OPT_INLINE __m512i codesOf(__m512 x) const {
    const __m512 least = _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(LEAST)));
    constexpr int LARGER_MAGNITUDE = 0b1011;
    const __m512 magnitude = SIGNED ? _mm512_range_ps(x, least, LARGER_MAGNITUDE) : x;
    const __m512i bits = _mm512_castps_si512(SIGNED ? magnitude : _mm512_max_ps(x, least));
    const __m512i segment = _mm512_permutexvar_epi32(_mm512_srli_epi32(bits, 24), segment_);
    const __m512i e = _mm512_srli_epi32(_mm512_add_epi32(bits, segment), 24);
    const __m512 product = _mm512_mul_ps(magnitude, _mm512_permutexvar_ps(e, slope_));
    const __m512 place = _mm512_min_ps(_mm512_add_ps(product, _mm512_permutexvar_ps(e, offset_)), _mm512_permutexvar_ps(e, cap_));
    return _mm512_cvttps_epi32(SIGNED ? withSign<OR>(place, x) : place);
  }

  static constexpr int OR = 0xf8, XOR = 0x78;

  /** `a` and the sign of `b`, by one of these. */
  template <int HOW>
  static __m512 withSign(__m512 a, __m512 b) {
    const __m512i sign = _mm512_set1_epi32(static_cast<int>(0x80000000u));
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b), sign, HOW));
  }

  // 2^-31: all of the codes' edges lie above, and 16 pairs of exponents reach from there to 2.
  static constexpr uint32_t LEAST = 0x30000000;

  const bool isSigned_;
  __m512i segment_;
  __m512 slope_, offset_, cap_, step_, start_;
};
#elif defined(__AVX2__)
/** The codebook in tables of eight: the ninth entry is that of the largest magnitude alone. */
class Codec {
 public:
  Codec(const Codebook& book, bool isSigned) : isSigned_(isSigned) {
    alignas(32) float step[8], start[8];
    for (int e = 0; e < 8; e++) {
      edges_[e] = _mm256_set1_ps(book.edges[e]);
      // By exponents, of which that of 1 is 127.
      step[(127 + e) & 7] = book.step[e];
      start[(127 + e) & 7] = book.start[e];
    }
    slope_ = _mm256_loadu_ps(book.slope);
    offset_ = _mm256_loadu_ps(book.offset);
    cap_ = _mm256_loadu_ps(book.cap);
    step_ = _mm256_load_ps(step);
    start_ = _mm256_load_ps(start);
    most_ = _mm256_set1_ps(book.cap[8]);
  }

  bool isSigned() const { return isSigned_; }

  /** Numbers that are unpacked at a time. */
  static constexpr int64_t STEP = PACKED_PIECE;

  /** STEP numbers. Segments by the highest bit of what a float32 of the code has as its exponent. */
  template <bool SIGNED>
  OPT_INLINE void unpackStep(const uint8_t* codes, float scale, float* to) const {
    const __m256 by = _mm256_set1_ps(scale);
    const __m256i one = _mm256_set1_epi32(1);
    for (int64_t i = 0; i < STEP; i += 8) {
      const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes + i));
      const __m256i code = SIGNED ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
      const __m256i magnitude = _mm256_abs_epi32(code);
      const __m256i place = _mm256_add_epi32(SIGNED ? _mm256_add_epi32(magnitude, magnitude) : magnitude, one);
      const __m256i exponent = _mm256_srli_epi32(_mm256_castps_si256(_mm256_cvtepi32_ps(place)), 23);
      const __m256 isLargest = _mm256_castsi256_ps(_mm256_cmpgt_epi32(place, _mm256_set1_epi32(255)));
      const __m256 product = _mm256_mul_ps(_mm256_cvtepi32_ps(code), _mm256_permutevar8x32_ps(step_, exponent));
      __m256 start = _mm256_blendv_ps(_mm256_permutevar8x32_ps(start_, exponent), _mm256_set1_ps(1), isLargest);
      if (SIGNED) start = _mm256_xor_ps(start, _mm256_and_ps(_mm256_castsi256_ps(code), _mm256_set1_ps(-0.0f)));
      _mm256_storeu_ps(to + i, _mm256_mul_ps(_mm256_add_ps(product, start), by));
    }
  }

  /** A piece, by 1 / scale or 0. */
  template <bool SIGNED>
  OPT_INLINE void packPiece(const float* from, float inverseScale, uint8_t* codes) const {
    const __m256 inverse = _mm256_set1_ps(inverseScale);
    // Packing puts halves of the four vectors side by side: dwords 0 and 4 are the first vector's.
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (int64_t i = 0; i < PACKED_PIECE; i += 32) {
      const __m256i a = codesOf<SIGNED>(_mm256_mul_ps(_mm256_loadu_ps(from + i), inverse));
      const __m256i b = codesOf<SIGNED>(_mm256_mul_ps(_mm256_loadu_ps(from + i + 8), inverse));
      const __m256i c = codesOf<SIGNED>(_mm256_mul_ps(_mm256_loadu_ps(from + i + 16), inverse));
      const __m256i d = codesOf<SIGNED>(_mm256_mul_ps(_mm256_loadu_ps(from + i + 24), inverse));
      // Saturated: 128 becomes 127.
      const __m256i bytes = SIGNED ? _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d))
                                   : _mm256_packus_epi16(_mm256_packus_epi32(a, b), _mm256_packus_epi32(c, d));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes + i), _mm256_permutevar8x32_epi32(bytes, order));
    }
  }

 private:
  template <bool SIGNED>
  OPT_INLINE __m256i codesOf(__m256 x) const {
    const __m256 magnitude = SIGNED ? _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x) : _mm256_max_ps(x, _mm256_setzero_ps());
    __m256i e = _mm256_setzero_si256();
    __m256 isAbove;
    for (int k = 0; k < 8; k++) {
      isAbove = _mm256_cmp_ps(magnitude, edges_[k], _CMP_GE_OQ);
      e = _mm256_sub_epi32(e, _mm256_castps_si256(isAbove));
    }
    const __m256 product = _mm256_mul_ps(magnitude, _mm256_permutevar8x32_ps(slope_, e));
    const __m256 sum = _mm256_add_ps(product, _mm256_permutevar8x32_ps(offset_, e));
    const __m256 place = _mm256_min_ps(sum, _mm256_permutevar8x32_ps(cap_, e));
    const __m256i code = _mm256_cvttps_epi32(_mm256_blendv_ps(place, most_, isAbove));
    return SIGNED ? _mm256_sign_epi32(code, _mm256_castps_si256(x)) : code;
  }

  const bool isSigned_;
  __m256 edges_[8], slope_, offset_, cap_, step_, start_, most_;
};
#else
/** The codebook by loops over a piece, each simple enough for compilers to make vectors of it. A piece is enough work for a call. */
class Codec {
 public:
  Codec(const Codebook& book, bool isSigned) : book_(book), isSigned_(isSigned) {}

  bool isSigned() const { return isSigned_; }

  static constexpr int64_t STEP = PACKED_PIECE;

  template <bool>
  OPT_APART void unpackStep(const uint8_t* codes, float scale, float* to) const {
    for (int64_t i = 0; i < STEP; i++) to[i] = book_.values[codes[i]] * scale;
  }

  template <bool SIGNED>
  OPT_APART void packPiece(const float* from, float inverse, uint8_t* codes) const {
    float magnitude[PACKED_PIECE];
    int32_t segment[PACKED_PIECE] = {};
    for (int64_t i = 0; i < PACKED_PIECE; i++) {
      const float x = from[i] * inverse;
      magnitude[i] = x > 0 ? x : SIGNED ? -x : 0;
    }
    for (int e = 0; e < 8; e++) {
      const float edge = book_.edges[e];
      for (int64_t i = 0; i < PACKED_PIECE; i++) segment[i] += magnitude[i] >= edge;
    }
    float place[PACKED_PIECE];
    for (int64_t i = 0; i < PACKED_PIECE; i++) {
      const int32_t e = segment[i];
      const float exact = magnitude[i] * book_.slope[e] + book_.offset[e];
      place[i] = exact < book_.cap[e] ? exact : book_.cap[e];
    }
    int32_t whole[PACKED_PIECE];
    for (int64_t i = 0; i < PACKED_PIECE; i++) {
      const auto code = static_cast<int32_t>(place[i]);
      const bool isBelow = (from[i] < 0) != (inverse < 0);
      whole[i] = SIGNED ? (isBelow ? -code : code < 127 ? code : 127) : code;
    }
    for (int64_t i = 0; i < PACKED_PIECE; i++) codes[i] = static_cast<uint8_t>(whole[i]);
  }

 private:
  const Codebook& book_;
  const bool isSigned_;
};
#endif

inline float inverseOf(float scale) { return scale == 0 ? 0 : 1 / scale; }

/** A block of codes as numbers. */
OPT_APART inline void unpackBlock(const Codec& codec, const uint8_t* codes, float scale, float* to) {
  const auto unpack = [&]<bool SIGNED>() {
    for (int64_t i = 0; i < PACKED_BLOCK; i += Codec::STEP) codec.unpackStep<SIGNED>(codes + i, scale, to + i);
  };
  if (codec.isSigned()) unpack.template operator()<true>();
  else unpack.template operator()<false>();
}

/** The codes of a block. */
OPT_APART inline void packBlock(const Codec& codec, const float* from, float scale, uint8_t* codes) {
  const float inverse = inverseOf(scale);
  const auto pack = [&]<bool SIGNED>() {
    for (int64_t i = 0; i < PACKED_BLOCK; i += PACKED_PIECE) codec.packPiece<SIGNED>(from + i, inverse, codes + i);
  };
  if (codec.isSigned()) pack.template operator()<true>();
  else pack.template operator()<false>();
}

}  // namespace opt::OPT_ISA
