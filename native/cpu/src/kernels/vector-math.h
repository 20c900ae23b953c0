// Transcendental functions of float32, computed in double without branches so that loops of them vectorise: the one rounding
// to float32 is nearly all of the error. float64 is libm's work.
#pragma once
#include "kernels/arithmetic.h"
#include "kernels/loops.h"

namespace opt::OPT_ISA {

// Adding it to |x| < 2^51 rounds x to an integer, which then lies in the low bits.
constexpr double TO_INTEGER = 0x1.8p52;

/** exp(x) for x in [-200, 200], others clamped; relative error below 1e-12. A NaN stays. */
inline double expInDouble(double x) {
  constexpr double LOG2_E = 0x1.71547652b82fep+0, LN2_HIGH = 0x1.62e42fef00000p-1, LN2_LOW = 0x1.473de6af278edp-34;
  x = x < -200.0 ? -200.0 : x;
  x = x > 200.0 ? 200.0 : x;
  const double shifted = x * LOG2_E + TO_INTEGER;
  const double n = shifted - TO_INTEGER;
  const double r = (x - n * LN2_HIGH) - n * LN2_LOW;
  // Taylor's series up to r^10 / 10!, |r| <= ln(2) / 2.
  double p = 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  const auto power = static_cast<int64_t>((static_cast<uint64_t>(bitsOf(shifted)) + 1023u) << 52);
  return p * fromBits(power);
}

#if defined(__FMA__) || defined(__aarch64__)
inline float multiplyAdd(float a, float b, float c) { return fma(a, b, c); }
#else
inline float multiplyAdd(float a, float b, float c) { return a * b + c; }
#endif

/** exp(x) for x up to 80 in float32 alone, for weights of sums; relative error below 2e-7. 0 where float32 has only subnormals, a NaN stays. */
inline float expInFloat(float x) {
  constexpr float LOG2_E = 0x1.715476p+0f, LN2_HIGH = 0x1.62ep-1f, LN2_LOW = 0x1.0bfbe8p-15f, INTEGER = 0x1.8p23f, LEAST = -87.0f;
  const float bounded = x < LEAST ? LEAST : x;
  const float shifted = multiplyAdd(bounded, LOG2_E, INTEGER);
  const float n = shifted - INTEGER;
  const float r = multiplyAdd(n, -LN2_LOW, multiplyAdd(n, -LN2_HIGH, bounded));
  // Taylor's series up to r^7 / 7!, |r| <= ln(2) / 2.
  float p = 1.0f / 5040;
  p = multiplyAdd(p, r, 1.0f / 720);
  p = multiplyAdd(p, r, 1.0f / 120);
  p = multiplyAdd(p, r, 1.0f / 24);
  p = multiplyAdd(p, r, 1.0f / 6);
  p = multiplyAdd(p, r, 0.5f);
  p = multiplyAdd(p, r, 1.0f);
  p = multiplyAdd(p, r, 1.0f);
  uint32_t bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 127u) << 23;
  float power;
  std::memcpy(&power, &bits, sizeof power);
  return x < LEAST ? 0.0f : p * power;
}

/** exp(x) for x up to 80 in x's own type: what a number counts for in a sum that the largest of them leads. */
inline float weightOf(float x) { return expInFloat(x); }
inline double weightOf(double x) { return std::exp(x); }

/** log(x) for x that a float32 can hold; relative error below 1e-14. */
inline double logInDouble(double x) {
  constexpr uint64_t SQRT_HALF = 0x3fe6a09e667f3bcd, EXPONENT_BIAS = uint64_t{1023} << 52;
  constexpr double LN2 = 0x1.62e42fefa39efp-1;
  const auto bits = static_cast<uint64_t>(bitsOf(x));
  // x = m * 2^(biased - 1023) with m in [sqrt(1/2), sqrt(2)).
  const uint64_t biased = (bits - SQRT_HALF + EXPONENT_BIAS) >> 52;
  const double exponent = fromBits(static_cast<int64_t>(biased | 0x4330000000000000)) - (0x1p52 + 1023);
  const double m = fromBits(static_cast<int64_t>(bits - ((biased - 1023) << 52)));
  // log(m) = 2 atanh(s) = 2 (s + s^3/3 + s^5/5 + ...), |s| < 0.172.
  const double s = (m - 1) / (m + 1), z = s * s;
  double p = 1.0 / 17;
  p = p * z + 1.0 / 15;
  p = p * z + 1.0 / 13;
  p = p * z + 1.0 / 11;
  p = p * z + 1.0 / 9;
  p = p * z + 1.0 / 7;
  p = p * z + 1.0 / 5;
  p = p * z + 1.0 / 3;
  p = p * z + 1.0;
  const double result = exponent * LN2 + 2 * s * p;
  return x > 0 ? (x == INFINITY ? x : result) : (x == 0 ? -INFINITY : NAN);
}

inline float exp(float x) { return static_cast<float>(expInDouble(static_cast<double>(x))); }
inline double exp(double x) { return std::exp(x); }
inline float log(float x) { return static_cast<float>(logInDouble(static_cast<double>(x))); }
inline double log(double x) { return std::log(x); }

/** (e^2x - 1) / (e^2x + 1), near 0 where that cancels by its series. */
inline float tanh(float a) {
  const auto x = static_cast<double>(a);
  const double z = x * x;
  const double series = x * (1 + z * (-1.0 / 3 + z * (2.0 / 15 - z * (17.0 / 315))));
  const double e = expInDouble(2 * x);
  return static_cast<float>(z < 4e-4 ? series : (e - 1) / (e + 1));
}
inline double tanh(double x) { return std::tanh(x); }

/** Minimax polynomials (made for this file by Chebyshev interpolation): erf(x) / x in x^2 up to 1, erfc(x) exp(x^2) in x - 5/2 up to 4. */
inline float erf(float a) {
  const auto x = static_cast<double>(a);
  const double z = x * x;
  double p = 1.058938064107502e-06;
  p = p * z - 1.3909340021874599e-05;
  p = p * z + 0.0001195656256820733;
  p = p * z - 0.0008542637997087229;
  p = p * z + 0.005223783477189248;
  p = p * z - 0.026866133235095593;
  p = p * z + 0.11283791308604582;
  p = p * z - 0.3761263888963531;
  p = p * z + 1.1283791670946768;
  const double magnitude = abs(x);
  const double u = magnitude - 2.5;
  double q = 1.0301512994682683e-07;
  q = q * u - 4.264734348150259e-07;
  q = q * u + 9.763901572173902e-07;
  q = q * u - 3.7472737729690635e-06;
  q = q * u + 1.6114106393804864e-05;
  q = q * u - 5.9523157031741315e-05;
  q = q * u + 0.0002109179637713861;
  q = q * u - 0.0007331529642909852;
  q = q * u + 0.0024670657614729186;
  q = q * u - 0.008001693887595496;
  q = q * u + 0.024937994751043007;
  q = q * u - 0.07434733674204068;
  q = q * u + 0.2108063640611436;
  const double tail = 1 - q * expInDouble(-z);
  const double outer = magnitude >= 4 ? 1.0 : tail;
  return static_cast<float>(z <= 1 ? x * p : (x < 0 ? -outer : outer));
}
inline double erf(double x) { return std::erf(x); }

// |x| up to which two parts of pi/2 reduce to full precision.
constexpr float MAX_ANGLE = 1e6f;

/** sin(x + quarters * pi/2) for |x| <= MAX_ANGLE. */
inline float sinInQuarters(float a, int64_t quarters) {
  constexpr double TWO_OVER_PI = 0x1.45f306dc9c883p-1, HALF_PI_HIGH = 0x1.921fb54400000p+0, HALF_PI_LOW = 0x1.0b4611a626331p-34;
  const auto x = static_cast<double>(a);
  const double shifted = x * TWO_OVER_PI + TO_INTEGER;
  const double n = shifted - TO_INTEGER;
  const double r = (x - n * HALF_PI_HIGH) - n * HALF_PI_LOW;
  const double z = r * r;
  // Taylor's series, |r| <= pi/4.
  double s = 1.0 / 6227020800;
  s = s * z - 1.0 / 39916800;
  s = s * z + 1.0 / 362880;
  s = s * z - 1.0 / 5040;
  s = s * z + 1.0 / 120;
  s = s * z - 1.0 / 6;
  const double sine = r + r * z * s;
  double c = -1.0 / 87178291200;
  c = c * z + 1.0 / 479001600;
  c = c * z - 1.0 / 3628800;
  c = c * z + 1.0 / 40320;
  c = c * z - 1.0 / 720;
  c = c * z + 1.0 / 24;
  c = c * z - 0.5;
  const double cosine = 1 + z * c;
  const int64_t quadrant = bitsOf(shifted) + quarters;
  const double value = (quadrant & 1) != 0 ? cosine : sine;
  return static_cast<float>((quadrant & 2) != 0 ? -value : value);
}

/** Are all elements within the reach of `sinInQuarters`? */
inline bool anglesAreSmall(const float* x, int64_t n) {
  bool small = true;
  for (int64_t i = 0; i < n; i++) small = small & (abs(x[i]) <= MAX_ANGLE);
  return small;
}

inline void sinArray(float* out, const float* x, int64_t n) {
  if (anglesAreSmall(x, n)) {
    OPT_INDEPENDENT
    for (int64_t i = 0; i < n; i++) out[i] = x[i] == 0 ? x[i] : sinInQuarters(x[i], 0);
  } else {
    for (int64_t i = 0; i < n; i++) out[i] = static_cast<float>(std::sin(static_cast<double>(x[i])));
  }
}

inline void cosArray(float* out, const float* x, int64_t n) {
  if (anglesAreSmall(x, n)) {
    OPT_INDEPENDENT
    for (int64_t i = 0; i < n; i++) out[i] = sinInQuarters(x[i], 1);
  } else {
    for (int64_t i = 0; i < n; i++) out[i] = static_cast<float>(std::cos(static_cast<double>(x[i])));
  }
}

inline void sinArray(double* out, const double* x, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = std::sin(x[i]);
}

inline void cosArray(double* out, const double* x, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = std::cos(x[i]);
}

/** x^y for |y| < 2^31, as C's pow. */
inline float powInDouble(float base, float exponent) {
  const auto x = static_cast<double>(base), y = static_cast<double>(exponent);
  const double shifted = y + TO_INTEGER;
  const bool isInteger = shifted - TO_INTEGER == y;
  const bool isOdd = isInteger && (bitsOf(shifted) & 1) != 0;
  const double magnitude = expInDouble(y * logInDouble(abs(x)));
  const double value = isOdd && bitsOf(x) < 0 ? -magnitude : magnitude;
  const double defined = x < 0 && x > -INFINITY && !isInteger ? NAN : value;
  return static_cast<float>(y == 0 || x == 1 ? 1.0 : defined);
}

inline void powArray(float* out, const float* x, const float* y, int64_t n) {
  bool moderate = true;
  for (int64_t i = 0; i < n; i++) moderate = moderate & (abs(y[i]) < 0x1p31f);
  if (moderate) {
    OPT_INDEPENDENT
    for (int64_t i = 0; i < n; i++) out[i] = powInDouble(x[i], y[i]);
  } else {
    for (int64_t i = 0; i < n; i++) out[i] = static_cast<float>(std::pow(static_cast<double>(x[i]), static_cast<double>(y[i])));
  }
}

inline void powArray(double* out, const double* x, const double* y, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = std::pow(x[i], y[i]);
}

}  // namespace opt::OPT_ISA
