// Elements as stored and the numbers they mean, as core defines them: integers truncate and saturate, floats round to nearest even.
#pragma once
#include "block.cuh"

struct f16 {
  unsigned short bits;
};
struct bf16 {
  unsigned short bits;
};
struct boolean {
  unsigned char bits;
};

__device__ __forceinline__ double numberOf(float stored) { return static_cast<double>(stored); }
__device__ __forceinline__ double numberOf(double stored) { return stored; }
__device__ __forceinline__ double numberOf(int stored) { return static_cast<double>(stored); }
__device__ __forceinline__ double numberOf(unsigned char stored) { return static_cast<double>(stored); }
__device__ __forceinline__ double numberOf(boolean stored) { return static_cast<double>(stored.bits); }
__device__ __forceinline__ double numberOf(bf16 stored) { return static_cast<double>(__int_as_float(static_cast<int>(static_cast<unsigned>(stored.bits) << 16))); }
__device__ __forceinline__ double numberOf(f16 stored) {
  const int exponent = stored.bits >> 10 & 31, fraction = stored.bits & 1023;
  double magnitude;
  if (exponent == 31) magnitude = static_cast<double>(__int_as_float(0x7f800000 | fraction << 13));
  else if (exponent == 0) magnitude = fraction * 0x1p-24;
  else magnitude = static_cast<double>(__int_as_float((exponent + 112) << 23 | fraction << 13));
  return stored.bits & 0x8000 ? -magnitude : magnitude;
}

template <typename To>
struct Store;

template <>
struct Store<double> {
  static __device__ __forceinline__ double from(double value) { return value; }
};
template <>
struct Store<float> {
  static __device__ __forceinline__ float from(double value) { return __double2float_rn(value); }
};
template <>
struct Store<int> {
  static __device__ __forceinline__ int from(double value) {
    if (value != value) return 0;
    return value <= -2147483648.0 ? -2147483647 - 1 : value >= 2147483647.0 ? 2147483647 : static_cast<int>(value);
  }
};
template <>
struct Store<unsigned char> {
  static __device__ __forceinline__ unsigned char from(double value) {
    return static_cast<unsigned char>(value >= 255 ? 255 : value > 0 ? static_cast<int>(value) : 0);  // NaN compares false: 0
  }
};
template <>
struct Store<boolean> {
  static __device__ __forceinline__ boolean from(double value) { return {static_cast<unsigned char>(value != 0 ? 1 : 0)}; }
};
template <>
struct Store<bf16> {
  /** By way of float32, as PyTorch does. A NaN stays one. */
  static __device__ __forceinline__ bf16 from(double value) {
    const auto bits = static_cast<unsigned>(__float_as_int(__double2float_rn(value)));
    if (value != value) return {static_cast<unsigned short>(bits >> 16 | 0x40)};
    return {static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
  }
};
template <>
struct Store<f16> {
  /** Rounded once, from all 53 bits. */
  static __device__ __forceinline__ f16 from(double value) {
    const long long bits = __double_as_longlong(value);
    const auto sign = static_cast<unsigned short>(bits >> 48 & 0x8000);
    const long long magnitude = bits & 0x7fffffffffffffffll;
    if (magnitude > 0x7ff0000000000000ll) return {static_cast<unsigned short>(sign | 0x7e00)};
    const int exponent = static_cast<int>(magnitude >> 52) - 1023;
    if (exponent > 15) return {static_cast<unsigned short>(sign | 0x7c00)};
    if (exponent < -25) return {sign};
    // Below 2^-14 the step stays 2^-24: one more bit is dropped per exponent.
    const int dropped = exponent < -14 ? 42 + (-14 - exponent) : 42;
    const long long significand = (magnitude & 0xfffffffffffffll) | 0x10000000000000ll;
    const long long half = 1ll << (dropped - 1), kept = significand >> dropped, rest = significand & ((1ll << dropped) - 1);
    const long long rounded = kept + (rest > half || (rest == half && (kept & 1)) ? 1 : 0);
    // A carry runs on into the exponent, and past the largest into infinity, as it should.
    const long long base = exponent < -14 ? 0 : static_cast<long long>(exponent + 14) << 10;
    return {static_cast<unsigned short>(sign | (base + rounded))};
  }
};

/** Values of one dtype are moved, not converted: NaN payloads stay. */
template <typename To, typename From>
struct Convert {
  static __device__ __forceinline__ To of(From stored) { return Store<To>::from(numberOf(stored)); }
};
template <typename Same>
struct Convert<Same, Same> {
  static __device__ __forceinline__ Same of(Same stored) { return stored; }
};
