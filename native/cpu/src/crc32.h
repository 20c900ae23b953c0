// zlib's CRC-32 by the processor's carry-less products, or by its own instruction. Each file is compiled for what it needs: addon.cc asks
// whether the processor has it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace opt {

/** The checksum of bytes that follow others, whose checksum is `before`. */
using Crc32 = uint32_t (*)(uint32_t before, const uint8_t* bytes, size_t length);

/** x86: PCLMULQDQ and SSE4.1; ARM: the CRC extension. */
uint32_t crc32(uint32_t before, const uint8_t* bytes, size_t length);

/** VPCLMULQDQ and AVX-512F: four times as fast. */
uint32_t crc32Wide(uint32_t before, const uint8_t* bytes, size_t length);

/** The generator, its highest power in bit 0, as all polynomials here. */
constexpr uint32_t GENERATOR = 0xedb88320;

/** Times x. */
constexpr uint32_t next(uint32_t polynomial) { return (polynomial >> 1) ^ (polynomial & 1 ? GENERATOR : 0); }

/** x^n mod the generator, as a factor of carry-less products, which lie one bit lower than polynomials do. */
constexpr int64_t factor(int n) {
  uint32_t power = 0x80000000;
  for (int i = 0; i < n; i++) power = next(power);
  return static_cast<int64_t>(power) << 1;
}

}  // namespace opt
