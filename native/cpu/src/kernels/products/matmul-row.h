// Products of one row and a matrix. Each number of the matrix is used once, so it is not packed for later. A vector's lanes are columns of
// the product, because the steps along k of each column are a chain.
#pragma once
#include "kernels/arithmetic.h"
#include "kernels/loops.h"
#include "kernels/products/matmul-pack.h"
#include "kernels/products/pieces.h"
#include "kernels/vector.h"

namespace opt::OPT_ISA {

// Columns whose sums stay in the first cache while the matrix's rows pass by.
constexpr int64_t ROW_COLUMNS = 1024;
// Columns whose lines are transposed at once, and chains that hide each other's latency.
template <typename T>
constexpr int GROUP = LANES<T> < 4 ? 4 : LANES<T>;
constexpr int64_t CHAINS = 2;
// Steps along k that are done at a time: a cache line of each row.
constexpr int64_t LINE_STEPS = 16;

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

/** A piece of k of a group of columns, whose first sums are known already. */
struct Chain {
  Range steps;
  int64_t column, known;
  bool add;
};

/** Adds up COUNT chains of a matrix whose rows lie along k, and stores their sums or adds them to the output. */
template <typename T, int COUNT>
void runChains(const T* row, const Operand<T>& matrix, const Chain* chains, T* output) {
  constexpr int SIDE = GROUP<T>, PARTS = SIDE / LANES<T>;
  using V = Vector<T>;
  V sums[COUNT][PARTS] = {};
  const int64_t stride = matrix.stride;
  const auto addStep = [&](int c, int64_t k, const V* column) OPT_INLINE_LAMBDA {
    const V number = splat(row + k);
    for (int p = 0; p < PARTS; p++) addProduct(sums[c][p], number, column[p]);
  };
  const auto addFour = [&](int c, const T* lines, int64_t k) OPT_INLINE_LAMBDA {
    const auto columns = transpose<SIDE, T>([&](int i) OPT_INLINE_LAMBDA { return lines + i * stride; });
#pragma GCC unroll 4
    for (int s = 0; s < 4; s++) {
      V parts[PARTS];
      std::memcpy(parts, &columns[static_cast<size_t>(s)], sizeof parts);
      addStep(c, k + s, parts);
    }
  };
  int64_t whole = chains[0].steps.size();
  for (int c = 1; c < COUNT; c++) whole = smaller(whole, chains[c].steps.size());
  whole = whole / LINE_STEPS * LINE_STEPS;
  for (int64_t k = 0; k < whole; k += LINE_STEPS) {
#pragma GCC unroll 4
    for (int c = 0; c < COUNT; c++) {
      const int64_t at = chains[c].steps.begin + k;
      const T* lines = matrix.at(chains[c].column, at);
#pragma GCC unroll 4
      for (int64_t s = 0; s < LINE_STEPS; s += 4) addFour(c, lines + s, at + s);
    }
  }
  for (int c = 0; c < COUNT; c++) {
    const Chain& chain = chains[c];
    int64_t k = chain.steps.begin + whole;
    for (; k + 4 <= chain.steps.end; k += 4) addFour(c, matrix.at(chain.column, k), k);
    T own[SIDE];
    std::memcpy(own, sums[c], sizeof own);
    T* const to = output + chain.column;
    for (int64_t i = chain.known; i < SIDE; i++) {
      for (int64_t s = k; s < chain.steps.end; s++) own[i] = fma(row[s], *matrix.at(chain.column + i, s), own[i]);
      to[i] = chain.add ? to[i] + own[i] : own[i];
    }
  }
}

/** The same of few columns: pieces and columns at a time. */
template <typename T>
void multiplyFewLines(const T* row, const Operand<T>& matrix, int64_t depth, T* output, int64_t begin, int64_t end) {
  constexpr int64_t AT_ONCE = 8;
  const int64_t pieces = piecesOf<T>(depth), least = depth / pieces, count = (end - begin) * pieces;
  for (int64_t i = 0; i < count; i += AT_ONCE) {
    T sums[AT_ONCE] = {};
    const T *numbers[AT_ONCE], *lines[AT_ONCE];
    for (int64_t c = 0; c < AT_ONCE; c++) {
      const int64_t at = smaller(i + c, count - 1), first = piece(depth, pieces, at % pieces).begin;
      numbers[c] = row + first;
      lines[c] = matrix.at(begin + at / pieces, first);
    }
    for (int64_t s = 0; s < least; s++) {
      for (int64_t c = 0; c < AT_ONCE; c++) sums[c] = fma(numbers[c][s], lines[c][s], sums[c]);
    }
    for (int64_t c = 0; c < smaller(AT_ONCE, count - i); c++) {
      // Pieces differ by a step at most.
      const int64_t number = (i + c) % pieces;
      if (piece(depth, pieces, number).size() > least) sums[c] = fma(numbers[c][least], lines[c][least], sums[c]);
      T& to = output[begin + (i + c) / pieces];
      to = number == 0 ? sums[c] : to + sums[c];
    }
  }
}

/** output[j] = the sum over k of row[k] * (j, k) of a matrix whose rows lie along k, for columns `begin` to `end`. */
template <typename T>
void multiplyLines(const T* row, const Operand<T>& matrix, int64_t depth, T* output, int64_t begin, int64_t end) {
  const int64_t pieces = piecesOf<T>(depth);
  if (end - begin < GROUP<T>) return multiplyFewLines(row, matrix, depth, output, begin, end);
  const int64_t count = ceilDivide(end - begin, static_cast<int64_t>(GROUP<T>)) * pieces;
  for (int64_t i = 0; i < count;) {
    Chain chains[CHAINS];
    const int64_t here = smaller(CHAINS, count - i);
    for (int64_t c = 0; c < here; c++, i++) {
      // The last group begins within the one before.
      const int64_t column = begin + i / pieces * GROUP<T>, first = smaller(column, end - GROUP<T>);
      chains[c] = {piece(depth, pieces, i % pieces), first, column - first, i % pieces > 0};
    }
    (here == CHAINS ? runChains<T, CHAINS> : runChains<T, 1>)(row, matrix, chains, output);
  }
}

/** output[j] = the sum over k of row[k] * (j, k) of the matrix, for columns `begin` to `end`. */
template <typename T>
void multiplyRow(const T* row, const Operand<T>& matrix, int64_t depth, T* output, int64_t begin, int64_t end) {
  if (matrix.consecutive) return multiplyLines(row, matrix, depth, output, begin, end);
  const int64_t pieces = piecesOf<T>(depth);
  for (int64_t from = begin; from < end; from += ROW_COLUMNS) {
    const int64_t count = smaller(ROW_COLUMNS, end - from);
    addRows(row, matrix, piece(depth, pieces, 0), from, count, output + from);
    for (int64_t i = 1; i < pieces; i++) {
      T sums[ROW_COLUMNS];
      addRows(row, matrix, piece(depth, pieces, i), from, count, sums);
      for (int64_t j = 0; j < count; j++) output[from + j] += sums[j];
    }
  }
}

}  // namespace opt::OPT_ISA
