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
#else
/** The codebook, element by element: compilers make selections of its comparisons. A piece is enough work for a call. */
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
    OPT_INDEPENDENT
    for (int64_t i = 0; i < PACKED_PIECE; i++) {
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
