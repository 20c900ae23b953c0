// Panels of a matrix copied into the order in which a tile of the product reads them: `width` numbers for each step along k.
#pragma once
#include <array>
#include <utility>

#include "kernels/parallel.h"
#include "kernels/vector.h"

namespace opt::OPT_ISA {

/** A matrix with one side along k: element (i, k) lies at i + k * stride, or at i * stride + k where k is `consecutive`. */
template <typename T>
struct Operand {
  const T* data;
  int64_t stride;
  bool consecutive;

  const T* at(int64_t i, int64_t k) const { return consecutive ? data + i * stride + k : data + i + k * stride; }
};

// Steps along k that are packed at a time: a cache line of each row.
constexpr int64_t PACKED_STEPS = 16;

/** Four numbers of each of COUNT / 4 rows; `at(i)` is where those of row 4 i begin. */
template <int COUNT, typename T, typename At>
inline Vector<T, COUNT> loadFours(const At& at, int i = 0) {
  if constexpr (COUNT == 4) {
    return loadVector<Vector<T, 4>>(at(i));
#if defined(__AVX512F__)
  } else if constexpr (COUNT == 16) {
    const auto four = [&](int row) { return (__m128)loadVector<Vector<T, 4>>(at(row)); };
    const __m512 two = _mm512_insertf32x4(_mm512_castps128_ps512(four(i)), four(i + 1), 1);
    return (Vector<T, COUNT>)_mm512_insertf32x4(_mm512_insertf32x4(two, four(i + 2), 2), four(i + 3), 3);
#endif
  } else {
    const auto low = loadFours<COUNT / 2, T>(at, i), high = loadFours<COUNT / 2, T>(at, i + COUNT / 8);
    return [&]<int... I>(std::integer_sequence<int, I...>) {
      return Vector<T, COUNT>(__builtin_shufflevector(low, high, I...));
    }(std::make_integer_sequence<int, COUNT>{});
  }
}

/** Of each four of `a` and `b`: the first two (HALF = 0) or the last two (HALF = 1) of both, in turns. */
template <int HALF, typename V>
inline V interleave(const V& a, const V& b) {
  constexpr int COUNT = sizeof(V) / sizeof(a[0]);
  return [&]<int... I>(std::integer_sequence<int, I...>) {
    return V(__builtin_shufflevector(a, b, (I / 4 * 4 + 2 * HALF + I % 4 / 2 + I % 2 * COUNT)...));
  }(std::make_integer_sequence<int, COUNT>{});
}

/** COUNT rows of four steps become four steps of COUNT numbers; `at(i)` is where row i begins. */
template <int COUNT, typename T, typename At>
inline std::array<Vector<T, COUNT>, 4> transpose(const At& at) {
  const auto rows = [&](int first) { return loadFours<COUNT, T>([&](int i) { return at(first + 4 * i); }); };
  const auto a = rows(0), b = rows(1), c = rows(2), d = rows(3);
  const auto lowAC = interleave<0>(a, c), highAC = interleave<1>(a, c), lowBD = interleave<0>(b, d), highBD = interleave<1>(b, d);
  return {interleave<0>(lowAC, lowBD), interleave<1>(lowAC, lowBD), interleave<0>(highAC, highBD), interleave<1>(highAC, highBD)};
}

/** As many whole transpositions of COUNT rows as there are; returns the first row that is left. */
template <int COUNT, typename T>
inline int64_t transposeRows(const T* rows, int64_t stride, int64_t i, int64_t count, int64_t steps, T* panel, int64_t width) {
  for (; i + COUNT <= count; i += COUNT) {
    const T* from = rows + i * stride;
    int64_t k = 0;
    for (; k + 4 <= steps; k += 4) {
      const auto columns = transpose<COUNT, T>([&](int row) { return from + row * stride + k; });
      for (int64_t s = 0; s < 4; s++) storeVector(panel + (k + s) * width + i, columns[static_cast<size_t>(s)]);
    }
    for (; k < steps; k++) {
      for (int64_t j = 0; j < COUNT; j++) panel[k * width + i + j] = from[j * stride + k];
    }
  }
  if constexpr (COUNT > 4) return transposeRows<COUNT / 2>(rows, stride, i, count, steps, panel, width);
  return i;
}

/** Copies a few neighbours; the last vector may overlap the one before. */
template <int COUNT, typename T>
inline void copyFew(const T* from, int64_t count, T* to) {
  if (count >= COUNT) {
    using V = Vector<T, COUNT>;
    for (int64_t i = 0; i + COUNT < count; i += COUNT) storeVector(to + i, loadVector<V>(from + i));
    storeVector(to + count - COUNT, loadVector<V>(from + count - COUNT));
  } else if constexpr (COUNT > 2) {
    copyFew<COUNT / 2>(from, count, to);
  } else if (count == 1) {
    *to = *from;
  }
}

/** Rows `begin` to `begin + count` of the operand, for `steps` steps from `k` on, each `width` after the one before; zeros from `count` to `end`. */
template <typename T>
inline void packSteps(const Operand<T>& operand, int64_t begin, int64_t count, int64_t k, int64_t steps, T* panel, int64_t width, int64_t end) {
  const T* from = operand.at(begin, k);
  if (operand.consecutive) {
    const int64_t rest = transposeRows<LANES<T> < 4 ? 4 : LANES<T>>(from, operand.stride, 0, count, steps, panel, width);
    for (int64_t i = rest; i < count; i++) {
      for (int64_t s = 0; s < steps; s++) panel[s * width + i] = from[i * operand.stride + s];
    }
  } else {
    for (int64_t s = 0; s < steps; s++) copyFew<LANES<T>>(from + s * operand.stride, count, panel + s * width);
  }
  for (int64_t s = 0; s < steps && count < end; s++) {
    for (int64_t i = count; i < end; i++) panel[s * width + i] = 0;
  }
}

template <typename T>
inline void packSteps(const Operand<T>& operand, int64_t begin, int64_t count, int64_t k, int64_t steps, T* panel, int64_t width) {
  packSteps(operand, begin, count, k, steps, panel, width, width);
}

}  // namespace opt::OPT_ISA
