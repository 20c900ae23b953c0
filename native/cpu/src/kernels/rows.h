// What kernels over the rows of a matrix share: largest value and sums of a row.
#pragma once
#include "kernels/arithmetic.h"
#include "kernels/loops.h"
#include "kernels/vector-math.h"

namespace opt::OPT_ISA {

// Independent partial results, so that loops of dependent additions vectorise.
constexpr int64_t PARTIALS = 16;

/** exp as exact as a result of type T needs. */
template <typename T>
inline double expFor(double x) {
  if constexpr (sizeof(T) == 4) return expInDouble(x);
  return std::exp(x);
}

/** The largest value, a NaN if there is one; -infinity of nothing. */
template <typename T>
inline T largestOf(const T* x, int64_t n) {
  T lanes[PARTIALS];
  for (int64_t j = 0; j < PARTIALS; j++) lanes[j] = -INFINITY;
  int64_t i = 0;
  for (; i + PARTIALS <= n; i += PARTIALS) {
    for (int64_t j = 0; j < PARTIALS; j++) lanes[j] = (x[i + j] > lanes[j]) | (x[i + j] != x[i + j]) ? x[i + j] : lanes[j];
  }
  for (; i < n; i++) lanes[0] = (x[i] > lanes[0]) | (x[i] != x[i]) ? x[i] : lanes[0];
  T largest = lanes[0];
  for (int64_t j = 1; j < PARTIALS; j++) largest = (lanes[j] > largest) | (lanes[j] != lanes[j]) ? lanes[j] : largest;
  return largest;
}

/** The sum of `term(i)` for i below n, in double. */
template <typename Term>
inline double sumOf(int64_t n, const Term& term) {
  double lanes[PARTIALS] = {};
  int64_t i = 0;
  for (; i + PARTIALS <= n; i += PARTIALS) {
    for (int64_t j = 0; j < PARTIALS; j++) lanes[j] += term(i + j);
  }
  // Not into one sum: a short row is all rest.
  OPT_INDEPENDENT
  for (int64_t j = 0; j < n - i; j++) lanes[j] += term(i + j);
  double sum = 0;
  for (int64_t j = 0; j < PARTIALS; j++) sum += lanes[j];
  return sum;
}

/** The largest value of a row and the logarithm of the sum of exp(x - largest). */
template <typename T>
struct LogSumExp {
  double largest, logSum;

  LogSumExp(const T* x, int64_t n) {
    largest = static_cast<double>(largestOf(x, n));
    logSum = std::log(sumOf(n, [&](int64_t i) { return expFor<T>(static_cast<double>(x[i]) - largest); }));
  }
};

}  // namespace opt::OPT_ISA
