// Products of one row and a matrix: each number of the matrix is used once, so it is read where it lies, in the order in which it lies there.
#pragma once
#include "kernels/loops.h"
#include "kernels/matmul-pack.h"
#include "kernels/parallel.h"
#include "kernels/vector.h"

namespace opt::OPT_ISA {

/** The sum of a[k] * b[k]. */
template <typename T>
inline T dot(const T* a, const T* b, int64_t count) {
  using V = Vector<T>;
  constexpr int SUMS = 4;
  V sums[SUMS] = {};
  int64_t k = 0;
  for (; k + SUMS * LANES<T> <= count; k += SUMS * LANES<T>) {
#pragma GCC unroll 4
    for (int s = 0; s < SUMS; s++) addProduct(sums[s], loadVector<V>(a + k + s * LANES<T>), loadVector<V>(b + k + s * LANES<T>));
  }
  for (; k + LANES<T> <= count; k += LANES<T>) addProduct(sums[0], loadVector<V>(a + k), loadVector<V>(b + k));
  const V sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  T total = 0;
  for (int i = 0; i < LANES<T>; i++) total += sum[i];
  for (; k < count; k++) total += a[k] * b[k];
  return total;
}

// Columns whose sums stay in the first cache while the matrix's rows pass by.
constexpr int64_t ROW_COLUMNS = 1024;

/** output[j] = the sum over k of row[k] * (j, k) of the matrix, for columns `begin` to `end`. */
template <typename T>
void multiplyRow(const T* row, const Operand<T>& matrix, int64_t depth, T* output, int64_t begin, int64_t end) {
  if (matrix.consecutive) {
    for (int64_t j = begin; j < end; j++) output[j] = dot(row, matrix.at(j, 0), depth);
    return;
  }
  for (int64_t from = begin; from < end; from += ROW_COLUMNS) {
    const int64_t count = smaller(ROW_COLUMNS, end - from);
    T* sums = output + from;
    for (int64_t j = 0; j < count; j++) sums[j] = 0;
    int64_t k = 0;
    for (; k + 4 <= depth; k += 4) {
      const T a = row[k], b = row[k + 1], c = row[k + 2], d = row[k + 3];
      const T *ofA = matrix.at(from, k), *ofB = matrix.at(from, k + 1), *ofC = matrix.at(from, k + 2), *ofD = matrix.at(from, k + 3);
      OPT_INDEPENDENT
      for (int64_t j = 0; j < count; j++) sums[j] += (a * ofA[j] + b * ofB[j]) + (c * ofC[j] + d * ofD[j]);
    }
    for (; k < depth; k++) {
      const T a = row[k], *ofA = matrix.at(from, k);
      OPT_INDEPENDENT
      for (int64_t j = 0; j < count; j++) sums[j] += a * ofA[j];
    }
  }
}

}  // namespace opt::OPT_ISA
