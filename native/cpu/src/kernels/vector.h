// The widest vectors of an instruction set, for the kernels whose registers are laid out by hand.
#pragma once
#include <cstdint>
#include <cstring>

#include "kernels/arithmetic.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace opt::OPT_ISA {

#if defined(__AVX512F__)
constexpr int VECTOR_BYTES = 64;
#elif defined(__AVX2__)
constexpr int VECTOR_BYTES = 32;
#else
constexpr int VECTOR_BYTES = 16;
#endif

template <typename T>
constexpr int LANES = VECTOR_BYTES / static_cast<int>(sizeof(T));

template <typename T, int COUNT = LANES<T>>
struct VectorOf {
  typedef T type __attribute__((vector_size(COUNT * sizeof(T))));
};
template <typename T, int COUNT = LANES<T>>
using Vector = typename VectorOf<T, COUNT>::type;

/** `count` neighbours from anywhere. */
template <typename V, typename T>
inline V loadVector(const T* from) {
  V v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <typename V, typename T>
inline void storeVector(T* to, const V& v) {
  std::memcpy(to, &v, sizeof v);
}

/** One number in all lanes, read from memory: adding it to zeros instead would cost an instruction where products are added up. */
inline Vector<float> splat(const float* number) {
#if defined(__AVX512F__)
  return (Vector<float>)_mm512_set1_ps(*number);
#elif defined(__AVX2__)
  return (Vector<float>)_mm256_broadcast_ss(number);
#elif defined(__aarch64__)
  return (Vector<float>)vld1q_dup_f32(number);
#else
  return (Vector<float>)_mm_load1_ps(number);
#endif
}

inline Vector<double> splat(const double* number) {
#if defined(__AVX512F__)
  return (Vector<double>)_mm512_set1_pd(*number);
#elif defined(__AVX2__)
  return (Vector<double>)_mm256_broadcast_sd(number);
#elif defined(__aarch64__)
  return (Vector<double>)vld1q_dup_f64(number);
#else
  return (Vector<double>)_mm_load1_pd(number);
#endif
}

#if defined(__AVX512F__)
/** Those of neighbours whose bit is set; others are 0, and nobody reads them. */
inline Vector<float> loadWhere(const float* from, uint64_t bits) {
  return (Vector<float>)_mm512_maskz_loadu_ps(static_cast<__mmask16>(bits), from);
}

inline Vector<double> loadWhere(const double* from, uint64_t bits) {
  return (Vector<double>)_mm512_maskz_loadu_pd(static_cast<__mmask8>(bits), from);
}
#elif defined(__AVX2__)
/** Those of neighbours whose bit is set; others are 0, and nobody reads them. */
inline Vector<float> loadWhere(const float* from, uint64_t bits) {
  const __m256i lanes = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128), all = _mm256_set1_epi32(static_cast<int>(bits));
  return (Vector<float>)_mm256_maskload_ps(from, _mm256_cmpeq_epi32(_mm256_and_si256(all, lanes), lanes));
}

inline Vector<double> loadWhere(const double* from, uint64_t bits) {
  const __m256i lanes = _mm256_setr_epi64x(1, 2, 4, 8), all = _mm256_set1_epi64x(static_cast<long long>(bits));
  return (Vector<double>)_mm256_maskload_pd(from, _mm256_cmpeq_epi64(_mm256_and_si256(all, lanes), lanes));
}
#endif

#if defined(__x86_64__) && !defined(__AVX2__)
/** Each lane by itself. */
template <typename V>
[[gnu::noinline]] V multiplyAdd(V sum, const V& a, const V& b) {
  for (size_t i = 0; i < sizeof(V) / sizeof(a[0]); i++) sum[i] = fma(a[i], b[i], sum[i]);
  return sum;
}

/** Two exact products plus a number, rounded to double. */
inline __m128i sumOfProduct(__m128 sum, __m128 a, __m128 b) {
  return _mm_castpd_si128(_mm_add_pd(_mm_mul_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(b)), _mm_cvtps_pd(sum)));
}
#endif

/** sum += a * b in one rounding. Without such an instruction: through double, as core's js/matmul.ts. */
inline void addProduct(Vector<float>& sum, const Vector<float>& a, const Vector<float>& b) {
#if defined(__AVX512F__)
  sum = (Vector<float>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)sum);
#elif defined(__AVX2__)
  sum = (Vector<float>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)sum);
#elif defined(__aarch64__)
  sum = (Vector<float>)vfmaq_f32((float32x4_t)sum, (float32x4_t)a, (float32x4_t)b);
#else
  const __m128 x = (__m128)a, y = (__m128)b, z = (__m128)sum;
  const __m128i low = sumOfProduct(z, x, y), high = sumOfProduct(_mm_movehl_ps(z, z), _mm_movehl_ps(x, x), _mm_movehl_ps(y, y));
  const __m128 lows = _mm_castsi128_ps(low), highs = _mm_castsi128_ps(high);
  const __m128i ends = _mm_castps_si128(_mm_shuffle_ps(lows, highs, 0x88)), begins = _mm_castps_si128(_mm_shuffle_ps(lows, highs, 0xdd));
  // Midway between two float32, or smaller than the normal ones and not 0.
  const __m128i midway = _mm_cmpeq_epi32(_mm_and_si128(ends, _mm_set1_epi32(0x1fffffff)), _mm_set1_epi32(0x10000000));
  const __m128i size = _mm_and_si128(begins, _mm_set1_epi32(0x7fffffff));
  const __m128i small = _mm_and_si128(_mm_cmplt_epi32(size, _mm_set1_epi32(0x38100000)), _mm_cmpgt_epi32(size, _mm_setzero_si128()));
  if (_mm_movemask_epi8(_mm_or_si128(midway, small)) == 0) [[likely]] {
    sum = (Vector<float>)_mm_movelh_ps(_mm_cvtpd_ps(_mm_castsi128_pd(low)), _mm_cvtpd_ps(_mm_castsi128_pd(high)));
  } else {
    sum = multiplyAdd(sum, a, b);
  }
#endif
}

inline void addProduct(Vector<double>& sum, const Vector<double>& a, const Vector<double>& b) {
#if defined(__AVX512F__)
  sum = (Vector<double>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)sum);
#elif defined(__AVX2__)
  sum = (Vector<double>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)sum);
#elif defined(__aarch64__)
  sum = (Vector<double>)vfmaq_f64((float64x2_t)sum, (float64x2_t)a, (float64x2_t)b);
#else
  sum = multiplyAdd(sum, a, b);
#endif
}

#if defined(__AVX512F__)
inline void addProduct(Vector<float, 8>& sum, const Vector<float, 8>& a, const Vector<float, 8>& b) {
  sum = (Vector<float, 8>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)sum);
}
#endif

}  // namespace opt::OPT_ISA
