// Products of one row and a matrix. Each number of the matrix is used once, so it is not packed for later. A vector's lanes are columns of
// the product, because the steps along k of each column are a chain.
#pragma once
#include "kernels/arithmetic.h"
#include "kernels/loops.h"
#include "kernels/matmul-pack.h"
#include "kernels/pieces.h"
#include "kernels/vector.h"

namespace opt::OPT_ISA {

// Columns whose sums stay in the first cache while the matrix's rows pass by.
constexpr int64_t ROW_COLUMNS = 1024;
// Columns whose lines are transposed at once, lanes of their sums, and groups of columns that hide the latency of their chains.
template <typename T>
constexpr int GROUP = LANES<T> < 4 ? 4 : LANES<T> > 8 ? 8 : LANES<T>;
template <typename T>
constexpr int SUM_LANES = LANES<T> < GROUP<T> ? LANES<T> : GROUP<T>;
constexpr int ROW_GROUPS = 4;
// Steps along k that are done at a time, and lines that are asked for before.
constexpr int64_t LINE_STEPS = 16, LINES_AHEAD = 4;

/** sums[j] = the chain over `steps` of row[k] * (j, k) of a matrix whose rows lie along j, for `count` columns from `from` on. */
template <typename T>
void addRows(const T* row, const Operand<T>& matrix, Range steps, int64_t from, int64_t count, T* sums) {
  for (int64_t j = 0; j < count; j++) sums[j] = 0;
  int64_t k = steps.begin;
  for (; k + 4 <= steps.end; k += 4) {
    const T a = row[k], b = row[k + 1], c = row[k + 2], d = row[k + 3];
    const T *ofA = matrix.at(from, k), *ofB = matrix.at(from, k + 1), *ofC = matrix.at(from, k + 2), *ofD = matrix.at(from, k + 3);
    OPT_INDEPENDENT
    for (int64_t j = 0; j < count; j++) sums[j] = fma(d, ofD[j], fma(c, ofC[j], fma(b, ofB[j], fma(a, ofA[j], sums[j]))));
  }
  for (; k < steps.end; k++) {
    const T a = row[k], *ofA = matrix.at(from, k);
    OPT_INDEPENDENT
    for (int64_t j = 0; j < count; j++) sums[j] = fma(a, ofA[j], sums[j]);
  }
}

/** The same of GROUPS groups of columns of a matrix whose rows lie along k; columns beyond `count` repeat the last. */
template <typename T, int GROUPS>
void addLines(const T* row, const Operand<T>& matrix, Range steps, int64_t from, int64_t count, T* sums) {
  constexpr int PARTS = GROUP<T> / SUM_LANES<T>;
  using V = Vector<T, SUM_LANES<T>>;
  const T* lines[GROUPS * GROUP<T>];
  for (int64_t i = 0; i < GROUPS * GROUP<T>; i++) lines[i] = matrix.at(from + smaller(i, count - 1), 0);
  V totals[GROUPS * PARTS] = {};
  const auto add = [&](int group, int part, int64_t k, const V& column) OPT_INLINE_LAMBDA {
    V number;
    for (int i = 0; i < SUM_LANES<T>; i++) number[i] = row[k];
    addProduct(totals[group * PARTS + part], number, column);
  };
  int64_t k = steps.begin;
  // A cache line of each row: more of them than a set of the first cache has ways would drive each other out.
  for (; k + LINE_STEPS <= steps.end; k += LINE_STEPS) {
#pragma GCC unroll 4
    for (int group = 0; group < GROUPS; group++) {
      const T* const* own = lines + group * GROUP<T>;
      for (int i = 0; i < GROUP<T>; i++) __builtin_prefetch(own[i] + k + LINES_AHEAD * LINE_STEPS, 0, 2);
#pragma GCC unroll 4
      for (int64_t s = 0; s < LINE_STEPS; s += 4) {
        const auto columns = transpose<GROUP<T>, T>([&](int i) { return own[i] + k + s; });
#pragma GCC unroll 4
        for (int t = 0; t < 4; t++) {
          V parts[PARTS];
          std::memcpy(parts, &columns[static_cast<size_t>(t)], sizeof parts);
          for (int p = 0; p < PARTS; p++) add(group, p, k + s + t, parts[p]);
        }
      }
    }
  }
  for (; k < steps.end; k++) {
    for (int p = 0; p < GROUPS * PARTS; p++) {
      V column;
      for (int i = 0; i < SUM_LANES<T>; i++) column[i] = lines[p * SUM_LANES<T> + i][k];
      add(0, p, k, column);
    }
  }
  std::memcpy(sums, totals, sizeof(T) * static_cast<size_t>(count));
}

/** The same of any number of columns. */
template <typename T>
void addColumns(const T* row, const Operand<T>& matrix, Range steps, int64_t from, int64_t count, T* sums) {
  constexpr int64_t ONE = GROUP<T>, ALL = ROW_GROUPS * ONE;
  int64_t j = 0;
  for (; j + ONE < count; j += ALL) addLines<T, ROW_GROUPS>(row, matrix, steps, from + j, smaller(ALL, count - j), sums + j);
  for (; j < count; j += ONE) addLines<T, 1>(row, matrix, steps, from + j, smaller(ONE, count - j), sums + j);
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
