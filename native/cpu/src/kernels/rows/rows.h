// What kernels over the rows of a matrix share: largest value and sums of a row.
#pragma once
#include <utility>

#include "kernels/arithmetic.h"
#include "kernels/functions.h"
#include "kernels/loops.h"
#include "kernels/parallel.h"
#include "kernels/vector.h"

namespace opt::OPT_ISA {

// The order of every sum: element i of a chunk goes to lane i mod LANES_OF_SUM, lanes are added as a tree, chunks in order.
constexpr int64_t LANES_OF_SUM = 16;
constexpr int64_t CHUNK = 32768;

/** The rows of a chunk where columns are added up, which are so many. */
inline int64_t rowsOfChunk(int64_t columns) { return CHUNK / larger<int64_t>(1, smaller<int64_t>(columns, 64)); }

/** All lanes joined in the first one, halves at a time. */
template <int HALF = 0, typename V, typename Join>
OPT_INLINE V foldLanes(const V& lanes, const Join& join) {
  constexpr int COUNT = sizeof(V) / sizeof(lanes[0]), HERE = HALF == 0 ? COUNT / 2 : HALF;
  const V joined = [&]<int... I>(std::integer_sequence<int, I...>) {
    return V(join(lanes, V(__builtin_shufflevector(lanes, lanes, (I ^ HERE)...))));
  }(std::make_integer_sequence<int, COUNT>{});
  if constexpr (HERE == 1) return joined;
  else return foldLanes<HERE / 2>(joined, join);
}

/** The largest value, a NaN if there is one; -infinity of nothing. */
template <typename T>
inline T largestOf(const T* x, int64_t n) {
  using V = Vector<T>;
  constexpr int SEVERAL = 4;
  V most[SEVERAL];
  for (V& lanes : most) lanes = V{} - static_cast<T>(INFINITY);
  auto isNaN = most[0] != most[0];
  int64_t i = 0;
  for (; i + SEVERAL * LANES<T> <= n; i += SEVERAL * LANES<T>) {
    for (int k = 0; k < SEVERAL; k++) {
      const V next = loadVector<V>(x + i + k * LANES<T>);
      most[k] = next > most[k] ? next : most[k];
      isNaN |= next != next;
    }
  }
  for (; i + LANES<T> <= n; i += LANES<T>) {
    const V next = loadVector<V>(x + i);
    most[0] = next > most[0] ? next : most[0];
    isNaN |= next != next;
  }
  for (int k = 1; k < SEVERAL; k++) most[0] = most[k] > most[0] ? most[k] : most[0];
  const V any = foldLanes(V(isNaN ? V{} + T(1) : V{}), [](const auto& a, const auto& b) { return a > b ? a : b; });
  const V all = foldLanes(most[0], [](const auto& a, const auto& b) { return a > b ? a : b; });
  T largest = any[0] > 0 ? T(NAN) : all[0];
  for (; i < n; i++) largest = (x[i] > largest) | (x[i] != x[i]) ? x[i] : largest;
  return largest;
}

/** Lanes added as a tree: j and j + 8, then + 4, + 2, + 1. */
template <typename Lanes>
OPT_INLINE double sumOfLanes(const Lanes* lanes) {
  const auto four = [lanes](int j) { return (lanes[j] + lanes[j + 8]) + (lanes[j + 4] + lanes[j + 12]); };
  return (four(0) + four(2)) + (four(1) + four(3));
}

/** The sum of `term(i)` for i from `begin` to `end`, a chunk. */
template <typename Term>
inline double sumOfChunk(int64_t begin, int64_t end, const Term& term) {
  double lanes[LANES_OF_SUM] = {};
  int64_t i = begin;
  for (; i + LANES_OF_SUM <= end; i += LANES_OF_SUM) {
    for (int64_t j = 0; j < LANES_OF_SUM; j++) lanes[j] += term(i + j);
  }
  if (i == end) return sumOfLanes(lanes);
  OPT_INDEPENDENT
  for (int64_t j = 0; j < end - i; j++) lanes[j] += term(i + j);
  // Volatile: loads of vectors would wait for the stores of single lanes.
  return sumOfLanes(static_cast<const volatile double*>(lanes));
}

/** The sum of `term(i)` for i below n, in double. */
template <typename Term>
inline double sumOf(int64_t n, const Term& term) {
  double sum = 0;
  for (int64_t begin = 0; begin < n; begin += CHUNK) sum += sumOfChunk(begin, smaller(n, begin + CHUNK), term);
  return sum;
}

/** The same of terms that take long to compute: a block of them is computed before it is added. */
template <typename Term>
inline double sumOfBlocks(int64_t n, const Term& term) {
  constexpr int64_t BLOCK = 512;
  static_assert(CHUNK % BLOCK == 0 && BLOCK % LANES_OF_SUM == 0);
  if (n < BLOCK / 4) return sumOf(n, term);
  decltype(term(0)) values[BLOCK];
  double sum = 0;
  for (int64_t chunk = 0; chunk < n; chunk += CHUNK) {
    double lanes[LANES_OF_SUM] = {};
    const int64_t end = smaller(n, chunk + CHUNK);
    for (int64_t begin = chunk; begin < end; begin += BLOCK) {
      const int64_t size = smaller(BLOCK, end - begin), whole = (size + LANES_OF_SUM - 1) / LANES_OF_SUM * LANES_OF_SUM;
      OPT_INDEPENDENT
      for (int64_t i = 0; i < size; i++) values[i] = term(begin + i);
      for (int64_t i = size; i < whole; i++) values[i] = 0;
      for (int64_t i = 0; i < whole; i += LANES_OF_SUM) {
        for (int64_t j = 0; j < LANES_OF_SUM; j++) lanes[j] += values[i + j];
      }
    }
    sum += sumOfLanes(lanes);
  }
  return sum;
}

/** The largest `value(i)` for i below n, as above, a zero being +0. */
template <typename T, typename Value>
inline T largestIn(int64_t n, const Value& value) {
  constexpr int64_t BLOCK = 512;
  T values[BLOCK], largest[2] = {T(-INFINITY), T(-INFINITY)};
  for (int64_t begin = 0; begin < n; begin += BLOCK) {
    const int64_t size = smaller(BLOCK, n - begin);
    OPT_INDEPENDENT
    for (int64_t i = 0; i < size; i++) values[i] = value(begin + i);
    largest[1] = largestOf(values, size);
    largest[0] = largestOf(largest, 2);
  }
  return largest[0] + T(0);
}

/** log of a float64 number in programs of T: to the accuracy of float32 in those. */
template <typename T>
inline double logFor(double x) {
  if constexpr (sizeof(T) == sizeof(float)) return logInDouble(x);
  else return std::log(x);
}

}  // namespace opt::OPT_ISA
