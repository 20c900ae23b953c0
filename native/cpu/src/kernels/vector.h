// The widest vectors of an instruction set, for the kernels whose registers are laid out by hand.
#pragma once
#include <cstdint>
#include <cstring>

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

/** sum += a * b, in one rounding where the instruction set can. */
inline void addProduct(Vector<float>& sum, const Vector<float>& a, const Vector<float>& b) {
#if defined(__AVX512F__)
  sum = (Vector<float>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)sum);
#elif defined(__AVX2__)
  sum = (Vector<float>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)sum);
#elif defined(__aarch64__)
  sum = (Vector<float>)vfmaq_f32((float32x4_t)sum, (float32x4_t)a, (float32x4_t)b);
#else
  sum += a * b;
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
  sum += a * b;
#endif
}

}  // namespace opt::OPT_ISA
