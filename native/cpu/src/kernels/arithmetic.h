// The ops of rules, one meaning on every instruction set.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

namespace opt::OPT_ISA {

inline float abs(float a) { return __builtin_fabsf(a); }
inline double abs(double a) { return __builtin_fabs(a); }
inline float sqrt(float a) { return __builtin_sqrtf(a); }
inline double sqrt(double a) { return __builtin_sqrt(a); }
/** A NaN in `a` survives. */
template <typename T>
inline T max(T a, T b) {
  return a < b ? b : a;
}
template <typename T>
inline T min(T a, T b) {
  return b < a ? b : a;
}

template <typename T>
inline T select(bool condition, T a, T b) {
  return condition ? a : b;
}

inline int64_t bitsOf(double x) {
  int64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

inline double fromBits(int64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

/** Whether roots are divided by a scalar through its reciprocal: see core's rule/root-division.ts. */
inline bool isMultiplied([[maybe_unused]] float divisor, [[maybe_unused]] double reach) {
#if defined(__FMA__) || defined(__aarch64__)
  return abs(static_cast<double>(divisor) - 1) < reach;
#else
  return false;
#endif
}
inline bool isMultiplied(double, double) { return false; }

#if defined(__FMA__) || defined(__aarch64__)

inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

#else

/** The exact value of (a + b) - sum, where sum = fl(a + b) (Knuth). */
inline double errorOfSum(double a, double b, double sum) {
  const double shadow = sum - a;
  return (a - (sum - shadow)) + (b - shadow);
}

/** `sum` rounded to odd instead of to nearest: when inexact, of its two neighbours the one whose last bit is 1. */
inline double toOdd(double sum, double error) {
  const int64_t bits = bitsOf(sum);
  // The error's sign against the sum's: -1 towards zero, 1 away from it. An infinite sum has the error NaN and stays.
  const int64_t step = ((bitsOf(error) ^ bits) >> 63) | 1;
  return fromBits(bits + (abs(error) > 0 ? step & ((bits & 1) - 1) : 0));
}

/** Boldo & Melquiond 2008: the product is exact in double, and a sum rounded to odd may be rounded again. */
inline float fma(float a, float b, float c) {
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double sum = product + static_cast<double>(c);
  return static_cast<float>(toOdd(sum, errorOfSum(product, static_cast<double>(c), sum)));
}

inline bool inSafeRange(double x) { return abs(x) > 0x1p-900 && abs(x) < 0x1p900; }

/** The same with a product in two parts (Dekker). libm does the extreme exponents, zeros and infinities. */
inline double fma(double a, double b, double c) {
  const double product = a * b;
  if (!inSafeRange(a) || !inSafeRange(b) || !inSafeRange(c) || !inSafeRange(product)) return std::fma(a, b, c);
  constexpr double SPLITTER = 0x1p27 + 1;
  const double scaledA = SPLITTER * a, highA = scaledA - (scaledA - a), lowA = a - highA;
  const double scaledB = SPLITTER * b, highB = scaledB - (scaledB - b), lowB = b - highB;
  const double productError = lowA * lowB - (((product - highA * highB) - lowA * highB) - highA * lowB);
  const double low = c + productError;
  const double high = product + low;
  const double lowError = errorOfSum(c, productError, low);
  const double highError = errorOfSum(product, low, high);
  const double errors = lowError + highError;
  return high + toOdd(errors, errorOfSum(lowError, highError, errors));
}

#endif

}  // namespace opt::OPT_ISA
