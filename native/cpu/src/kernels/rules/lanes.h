// The numbers that a loop of several stages computes at a time: rules are generated for them as for one number (arithmetic.h).
#pragma once
#include "kernels/arithmetic.h"
#include "kernels/vector.h"

namespace opt::OPT_ISA {

#if defined(__AVX512F__)
/** A vector anywhere in memory. */
struct [[gnu::may_alias]] Lanes {
  typedef float Floats __attribute__((vector_size(64), aligned(4), may_alias));
  Floats all;

  Lanes() = default;
  explicit Lanes(double x) : all((Floats)_mm512_set1_ps(static_cast<float>(x))) {}
  Lanes(__m512 x) : all((Floats)x) {}
  operator __m512() const { return (__m512)all; }
};

inline Lanes operator+(Lanes a, Lanes b) { return _mm512_add_ps(a, b); }
inline Lanes operator-(Lanes a, Lanes b) { return _mm512_sub_ps(a, b); }
inline Lanes operator*(Lanes a, Lanes b) { return _mm512_mul_ps(a, b); }
inline Lanes operator/(Lanes a, Lanes b) { return _mm512_div_ps(a, b); }
inline Lanes operator-(Lanes a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f)); }
inline __mmask16 operator<(Lanes a, Lanes b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
inline Lanes fma(Lanes a, Lanes b, Lanes c) { return _mm512_fmadd_ps(a, b, c); }
inline Lanes sqrt(Lanes a) { return _mm512_sqrt_ps(a); }
inline Lanes abs(Lanes a) { return _mm512_abs_ps(a); }
// The instructions give their second operand where the first is not larger, or not smaller.
inline Lanes max(Lanes a, Lanes b) { return _mm512_max_ps(b, a); }
inline Lanes min(Lanes a, Lanes b) { return _mm512_min_ps(b, a); }
inline Lanes select(__mmask16 condition, Lanes a, Lanes b) { return _mm512_mask_blend_ps(condition, b, a); }
inline bool isMultiplied(Lanes divisor, double reach) { return isMultiplied(divisor.all[0], reach); }
#else
/** One: compilers make vectors of loops over them. */
using Lanes = float;
#endif

constexpr int64_t LANE_COUNT = sizeof(Lanes) / sizeof(float);

}  // namespace opt::OPT_ISA
