// Products of one row and a matrix. Each number of the matrix is used once, so it is not packed for later. A vector's lanes are columns of
// the product, because the steps along k of each column are a chain.
#pragma once
#include "kernels/arithmetic.h"
#include "kernels/matmul-pack.h"
#include "kernels/pieces.h"
#include "kernels/vector.h"

namespace opt::OPT_ISA {

// Columns whose sums stay in the first cache while the matrix's rows pass by.
constexpr int64_t ROW_COLUMNS = 1024;
// Vectors of sums that hide the latency of a chain.
constexpr int64_t ROW_VECTORS = 4;

/** sums[j] = the chain over `steps` of row[k] * (j, k) of a matrix whose rows lie along j, for `count` columns from `from` on. */
template <typename T>
void addRows(const T* row, const Operand<T>& matrix, Range steps, int64_t from, int64_t count, T* sums) {
  using V = Vector<T>;
  for (int64_t j = 0; j < count; j++) sums[j] = 0;
  const auto add = [&]<int STEPS>(std::integer_sequence<int, STEPS>, int64_t k) {
    V numbers[STEPS];
    for (int s = 0; s < STEPS; s++) numbers[s] = splat(row + k + s);
    int64_t j = 0;
    for (; j + LANES<T> <= count; j += LANES<T>) {
      V sum = loadVector<V>(sums + j);
#pragma GCC unroll 4
      for (int s = 0; s < STEPS; s++) addProduct(sum, numbers[s], loadVector<V>(matrix.at(from + j, k + s)));
      storeVector(sums + j, sum);
    }
    for (; j < count; j++) {
      for (int s = 0; s < STEPS; s++) sums[j] = fma(row[k + s], *matrix.at(from + j, k + s), sums[j]);
    }
  };
  int64_t k = steps.begin;
  for (; k + 4 <= steps.end; k += 4) add(std::integer_sequence<int, 4>{}, k);
  for (; k < steps.end; k++) add(std::integer_sequence<int, 1>{}, k);
}

/** The same of a matrix whose rows lie along k: lines of a few are transposed at a time. */
template <typename T>
void addColumns(const T* row, const Operand<T>& matrix, Range steps, int64_t from, int64_t count, T* sums) {
  using V = Vector<T>;
  constexpr int64_t WIDTH = ROW_VECTORS * LANES<T>;
  for (int64_t first = 0; first < count; first += WIDTH) {
    const int64_t columns = smaller(WIDTH, count - first);
    V totals[ROW_VECTORS] = {};
    T packed[PACKED_STEPS * WIDTH];
    for (int64_t k = steps.begin; k < steps.end; k += PACKED_STEPS) {
      const int64_t here = smaller(PACKED_STEPS, steps.end - k);
      packSteps(matrix, from + first, columns, k, here, packed, WIDTH);
      for (int64_t s = 0; s < here; s++) {
        const V number = splat(row + k + s);
#pragma GCC unroll 4
        for (int v = 0; v < ROW_VECTORS; v++) addProduct(totals[v], number, loadVector<V>(packed + s * WIDTH + v * LANES<T>));
      }
    }
    std::memcpy(sums + first, totals, sizeof(T) * static_cast<size_t>(columns));
  }
}

/** output[j] = the sum over k of row[k] * (j, k) of the matrix, for columns `begin` to `end`. */
template <typename T>
void multiplyRow(const T* row, const Operand<T>& matrix, int64_t depth, T* output, int64_t begin, int64_t end) {
  const auto add = matrix.consecutive ? addColumns<T> : addRows<T>;
  const int64_t pieces = piecesOf<T>(depth);
  for (int64_t from = begin; from < end; from += ROW_COLUMNS) {
    const int64_t count = smaller(ROW_COLUMNS, end - from);
    add(row, matrix, piece(depth, pieces, 0), from, count, output + from);
    for (int64_t i = 1; i < pieces; i++) {
      T sums[ROW_COLUMNS];
      add(row, matrix, piece(depth, pieces, i), from, count, sums);
      for (int64_t j = 0; j < count; j++) output[from + j] += sums[j];
    }
  }
}

}  // namespace opt::OPT_ISA
