#include "crc32.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <arm_acle.h>
#endif

namespace opt {
namespace {

#if defined(__x86_64__)

constexpr std::array<uint32_t, 256> bytewise() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; i++) {
    table[i] = i;
    for (int bit = 0; bit < 8; bit++) table[i] = next(table[i]);
  }
  return table;
}
constexpr std::array<uint32_t, 256> BYTEWISE = bytewise();

uint32_t rest(uint32_t state, const uint8_t* bytes, size_t length) {
  for (size_t i = 0; i < length; i++) state = BYTEWISE[(state ^ bytes[i]) & 255] ^ (state >> 8);
  return state;
}

/** 16 bytes moved to where `more` stands, BYTES further on: Gopal and others, "Fast CRC Computation for Generic Polynomials", Intel, 2009. */
template <int BYTES>
__m128i fold(__m128i earlier, __m128i more) {
  const __m128i factors = _mm_set_epi64x(factor(BYTES * 8 - 32), factor(BYTES * 8 + 32));
  const __m128i low = _mm_clmulepi64_si128(earlier, factors, 0x00), high = _mm_clmulepi64_si128(earlier, factors, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), more);
}

__m128i load(const uint8_t* bytes) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)); }

uint32_t update(uint32_t state, const uint8_t* bytes, size_t length) {
  constexpr int WIDTH = 16, LANES = 4, STRIDE = LANES * WIDTH;
  if (length < STRIDE) return rest(state, bytes, length);
  __m128i lanes[LANES];
  for (int i = 0; i < LANES; i++) lanes[i] = load(bytes + i * WIDTH);
  lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128(static_cast<int>(state)));
  size_t done = STRIDE;
  for (; length - done >= STRIDE; done += STRIDE) {
    for (int i = 0; i < LANES; i++) lanes[i] = fold<STRIDE>(lanes[i], load(bytes + done + i * WIDTH));
  }
  __m128i all = lanes[0];
  for (int i = 1; i < LANES; i++) all = fold<WIDTH>(all, lanes[i]);
  for (; length - done >= WIDTH; done += WIDTH) all = fold<WIDTH>(all, load(bytes + done));
  uint8_t last[WIDTH];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(last), all);
  return rest(rest(0, last, WIDTH), bytes + done, length - done);
}

#else

uint32_t update(uint32_t state, const uint8_t* bytes, size_t length) {
  size_t done = 0;
  for (; length - done >= 8; done += 8) {
    uint64_t word;
    std::memcpy(&word, bytes + done, 8);
    state = __crc32d(state, word);
  }
  for (; done < length; done++) state = __crc32b(state, bytes[done]);
  return state;
}

#endif

}  // namespace

uint32_t crc32(uint32_t before, const uint8_t* bytes, size_t length) { return ~update(~before, bytes, length); }

}  // namespace opt
