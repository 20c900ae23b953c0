// exp, log and so on: of float32 from core's definitions (functions.inc), without branches so that loops of them vectorise; of float64 libm's.
#pragma once
#include "kernels/arithmetic.h"
#include "kernels/loops.h"

namespace opt::OPT_ISA {

/** -a where b has the sign bit. */
inline double flipsign(double a, double b) { return fromBits(bitsOf(a) ^ (bitsOf(b) & INT64_MIN)); }

/** 2^n: adding this leaves the exponent's bits at the bottom. */
inline double power2(double n) {
  return fromBits(static_cast<int64_t>(static_cast<uint64_t>(bitsOf(n + (0x1.8p52 + 1023))) << 52));
}
inline float power2(float n) {
  const float shifted = n + (0x1.8p23f + 127);
  uint32_t bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits <<= 23;
  float power;
  std::memcpy(&power, &bits, sizeof power);
  return power;
}

// x = 2^k m with m from sqrt(1/2) on, told apart by upper words.
constexpr uint64_t SQRT_HALF = uint64_t{0x3fe6a09e} << 32, TO_ONE = (uint64_t{0x3ff00000} << 32) - SQRT_HALF;

/** k. */
inline double exponent(double x) {
  const uint64_t biased = (static_cast<uint64_t>(bitsOf(x)) + TO_ONE) >> 52;
  return fromBits(static_cast<int64_t>(biased | 0x4330000000000000)) - (0x1p52 + 1023);
}

/** m. */
inline double significand(double x) {
  return fromBits(static_cast<int64_t>(((static_cast<uint64_t>(bitsOf(x)) + TO_ONE) & 0x000fffffffffffff) + SQRT_HALF));
}

#include "functions.inc"

inline float exp(float x) { return static_cast<float>(expInDouble(x)); }
inline double exp(double x) { return std::exp(x); }
inline float log(float x) { return static_cast<float>(logInDouble(x)); }
inline double log(double x) { return std::log(x); }
inline float tanh(float x) { return static_cast<float>(tanhInDouble(x)); }
inline double tanh(double x) { return std::tanh(x); }
inline float erf(float x) { return static_cast<float>(erfInDouble(x)); }
inline double erf(double x) { return std::erf(x); }
inline float sin(float x) { return static_cast<float>(sinInDouble(x)); }
inline double sin(double x) { return std::sin(x); }
inline float cos(float x) { return static_cast<float>(cosInDouble(x)); }
inline double cos(double x) { return std::cos(x); }
inline float pow(float x, float y) { return static_cast<float>(powInDouble(x, y)); }
inline double pow(double x, double y) { return std::pow(x, y); }
inline float log1p(float x) { return static_cast<float>(log1pInDouble(x)); }
inline double log1p(double x) { return std::log1p(x); }
inline float expm1(float x) { return static_cast<float>(expm1InDouble(x)); }
inline double expm1(double x) { return std::expm1(x); }

/** exp(x) for x up to 80 in x's own type: what a number counts for in a sum that the largest of them leads. */
inline float weightOf(float x) { return weightInFloat(x); }
inline double weightOf(double x) { return std::exp(x); }

/** out[i] = f(x[i]), where |x[i]| is beyond the reach of core's definition libm's. */
template <typename T, typename Function>
inline void mapInReach(T* out, const T* x, int64_t n, float reach, const Function& f, double (*beyond)(double)) {
  bool isInReach = true;
  for (int64_t i = 0; i < n; i++) isInReach = isInReach & !(abs(x[i]) > reach);
  if (isInReach) {
    OPT_INDEPENDENT
    for (int64_t i = 0; i < n; i++) out[i] = f(x[i]);
  } else {
    for (int64_t i = 0; i < n; i++) out[i] = abs(x[i]) > reach ? static_cast<T>(beyond(x[i])) : f(x[i]);
  }
}

}  // namespace opt::OPT_ISA
