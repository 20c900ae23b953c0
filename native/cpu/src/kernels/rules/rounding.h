// 16-bit elements that are rounded at random (core's rule/rounding.ts says by what bits).
#pragma once
#include <cstdint>

#include "kernels/loops.h"
#include "kernels/stored.h"

namespace opt::OPT_ISA {

/** By what a launch draws: two whole numbers below 2^24. */
struct Keys {
  uint32_t first, second;
};

/** 16 bits of each element from the one `at` on of a tensor whose first one has that place. */
struct Draws {
  uint32_t start, parameter;

  Draws(const Keys& keys, uint64_t place, int64_t at)
      : start(static_cast<uint32_t>(place) + static_cast<uint32_t>(at) + keys.first), parameter(static_cast<uint32_t>(place >> 32) * 0x9e3779b9u + keys.second) {}

  uint32_t of(uint32_t i) const {
    uint32_t x = start + i;
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) + parameter;
    return (x ^ x >> 15) * 0x846ca68bu >> 16;
  }
};

inline BFloat toBFloat(float x, uint32_t draw) {
  const uint32_t bits = wordOf(x);
  return {static_cast<uint16_t>(x == x ? (bits + draw) >> 16 : (bits >> 16 | 0x40))};
}

/** In 2^-16 parts of the gap: of normals, and of what is below 2^-14. */
inline Half toHalf(float x, uint32_t draw) {
  const uint32_t bits = wordOf(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  const bool isSmall = magnitude < wordOf(0x1p-14f);
  const auto small = static_cast<uint32_t>(static_cast<int32_t>((isSmall ? fromWord(magnitude) : 0.0f) * 0x1p40f));
  const uint32_t parts = isSmall ? small : (magnitude - ((127u - 15u) << 23)) << 3;
  const uint32_t bounded = magnitude < wordOf(0x1p16f) ? (parts + draw) >> 16 : 0x7c00;
  return {static_cast<uint16_t>(sign | (magnitude > 0x7f800000 ? 0x7e00 : bounded))};
}

inline void narrowAtRandom(const float* from, const Draws& draws, int64_t n, BFloat* to) {
  OPT_INDEPENDENT
  for (int64_t i = 0; i < n; i++) to[i] = toBFloat(from[i], draws.of(static_cast<uint32_t>(i)));
}

inline void narrowAtRandom(const float* from, const Draws& draws, int64_t n, Half* to) {
  OPT_INDEPENDENT
  for (int64_t i = 0; i < n; i++) to[i] = toHalf(from[i], draws.of(static_cast<uint32_t>(i)));
}

}  // namespace opt::OPT_ISA
