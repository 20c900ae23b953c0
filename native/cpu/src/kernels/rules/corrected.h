// State in 24 bits (core's rule/corrected.ts says what the bits mean): 256 elements of 16 bits, then 8 bits of correction for each.
#pragma once
#include <cstdint>

#include "kernels/loops.h"
#include "kernels/rules/codec.h"

namespace opt::OPT_ISA {

constexpr int64_t CORRECTED_BYTES = 3 * PACKED_BLOCK;

inline uint32_t upper24(uint32_t word) {
  const bool isNumber = (word & 0x7fffffffu) <= 0x7f800000u;
  const uint32_t rounded = (word + 0x7f + (word >> 8 & 1)) >> 8;
  return isNumber ? rounded : word >> 8 | 0x4000;
}

/** Elements `at` to `at` + n as numbers; `at` begins a block. */
OPT_APART inline void uncorrect(const uint8_t* packed, int64_t at, int64_t n, float* to) {
  for (int64_t done = 0; done < n; done += PACKED_BLOCK) {
    const int64_t count = n - done < PACKED_BLOCK ? n - done : PACKED_BLOCK;
    const uint8_t* block = packed + (at + done) / PACKED_BLOCK * CORRECTED_BYTES;
    const uint16_t* high = reinterpret_cast<const uint16_t*>(block);
    const int8_t* correction = reinterpret_cast<const int8_t*>(block + 2 * PACKED_BLOCK);
    float* const numbers = to + done;
    OPT_INDEPENDENT
    for (int64_t i = 0; i < count; i++) {
      const auto further = static_cast<uint32_t>(static_cast<int32_t>(correction[i]));
      numbers[i] = fromWord((static_cast<uint32_t>(high[i]) << 16) + (further << 8));
    }
  }
}

/** Numbers as elements `at` to `at` + n. */
OPT_APART inline void correct(const float* from, int64_t at, int64_t n, uint8_t* packed) {
  for (int64_t done = 0; done < n; done += PACKED_BLOCK) {
    const int64_t count = n - done < PACKED_BLOCK ? n - done : PACKED_BLOCK;
    uint8_t* block = packed + (at + done) / PACKED_BLOCK * CORRECTED_BYTES;
    uint16_t* high = reinterpret_cast<uint16_t*>(block);
    uint8_t* correction = block + 2 * PACKED_BLOCK;
    const float* const numbers = from + done;
    OPT_INDEPENDENT
    for (int64_t i = 0; i < count; i++) {
      const uint32_t w = upper24(wordOf(numbers[i]));
      high[i] = static_cast<uint16_t>((w + 0x80) >> 8);
      correction[i] = static_cast<uint8_t>(w);
    }
  }
}

}  // namespace opt::OPT_ISA
