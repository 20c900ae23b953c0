// Stored element types and how values pass from one to another.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace opt::OPT_ISA {

struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};
struct Bool {
  uint8_t value;
};

inline uint32_t wordOf(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

inline float fromWord(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

/** Exact. Subnormal halves are integers times 2^-24. */
inline float widen(Half half) {
  const uint32_t sign = static_cast<uint32_t>(half.bits & 0x8000) << 16, rest = half.bits & 0x7fff;
  const uint32_t normal = (rest << 13) + ((127u - 15u) << 23);
  const uint32_t special = 0x7f800000u | (rest << 13);
  const float subnormal = static_cast<float>(static_cast<int32_t>(rest)) * 0x1p-24f;
  const uint32_t magnitude = rest >= 0x7c00 ? special : rest < 0x0400 ? wordOf(subnormal) : normal;
  return fromWord(sign | magnitude);
}

inline float widen(BFloat bfloat) { return fromWord(static_cast<uint32_t>(bfloat.bits) << 16); }

/** To nearest even, in one rounding from double: float32 is exact in it. */
inline Half toHalf(double x) {
  int64_t pattern;
  std::memcpy(&pattern, &x, sizeof pattern);
  const auto sign = static_cast<uint16_t>((pattern >> 48) & 0x8000);
  const double magnitude = x < 0 ? -x : x;
  if (!(magnitude == magnitude)) return {static_cast<uint16_t>(sign | 0x7e00)};
  if (magnitude >= 65520) return {static_cast<uint16_t>(sign | 0x7c00)};
  // Adding a power of two whose last place is the half's rounds to it.
  const int64_t exponent = (pattern >> 52) & 0x7ff;
  const int64_t least = exponent < 1023 - 14 ? 1023 - 14 : exponent;
  double step;
  const int64_t stepBits = (least + 42) << 52;
  std::memcpy(&step, &stepBits, sizeof step);
  const double rounded = (magnitude + step) - step;
  // In units of 2^-24 a subnormal is its own pattern; else the exponent goes above ten bits of fraction.
  if (rounded < 0x1p-14) return {static_cast<uint16_t>(sign | static_cast<uint16_t>(rounded * 0x1p24))};
  int64_t bits;
  std::memcpy(&bits, &rounded, sizeof bits);
  return {static_cast<uint16_t>(sign | static_cast<uint16_t>((bits >> 42) - (int64_t{1023 - 15} << 10)))};
}

/** The same of float32, in its own words: as many at once as there are floats in a vector. */
inline Half toHalf(float x) {
  const uint32_t bits = wordOf(x), sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
  const uint32_t normal = (magnitude - ((127u - 15u) << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // The last place of 0.5 is the half's least number.
  const uint32_t subnormal = wordOf(fromWord(magnitude) + 0.5f) - wordOf(0.5f);
  const uint32_t finite = magnitude < wordOf(0x1p-14f) ? subnormal : normal;
  const uint32_t bounded = magnitude < wordOf(65520.0f) ? finite : 0x7c00;
  return {static_cast<uint16_t>(sign | (magnitude > 0x7f800000 ? 0x7e00 : bounded))};
}

/** To nearest even; a NaN stays one. */
inline BFloat toBFloat(float x) {
  const uint32_t bits = wordOf(x);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return {static_cast<uint16_t>(x == x ? rounded : ((bits >> 16) | 0x40))};
}

/** Truncates and saturates; NaN gives 0. */
template <typename Integer>
inline Integer toInteger(double x, double low, double high) {
  const double bounded = x < low ? low : (x > high ? high : x);
  return static_cast<Integer>(static_cast<int32_t>(bounded == bounded ? bounded : 0.0));
}

template <typename From>
inline auto valueOf(From stored) {
  if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat>) {
    return widen(stored);
  } else if constexpr (std::is_same_v<From, Bool>) {
    return static_cast<int32_t>(stored.value);
  } else if constexpr (std::is_same_v<From, uint8_t>) {
    return static_cast<int32_t>(stored);
  } else {
    return stored;
  }
}

template <typename From, typename To>
inline To convert(From stored) {
  if constexpr (std::is_same_v<From, To>) {
    return stored;
  } else {
    const auto value = valueOf(stored);
    if constexpr (std::is_same_v<To, Half>) {
      if constexpr (std::is_same_v<decltype(value), const float>) return toHalf(value);
      else return toHalf(static_cast<double>(value));
    } else if constexpr (std::is_same_v<To, BFloat>) {
      return toBFloat(static_cast<float>(value));
    } else if constexpr (std::is_same_v<To, Bool>) {
      return {static_cast<uint8_t>(value != 0)};
    } else if constexpr (std::is_same_v<To, int32_t>) {
      return toInteger<int32_t>(static_cast<double>(value), -2147483648.0, 2147483647.0);
    } else if constexpr (std::is_same_v<To, uint8_t>) {
      return toInteger<uint8_t>(static_cast<double>(value), 0, 255);
    } else {
      return static_cast<To>(value);
    }
  }
}

}  // namespace opt::OPT_ISA
