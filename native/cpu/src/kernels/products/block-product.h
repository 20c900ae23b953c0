// Products of blocks that fit the caches, for kernels of many ops: the left side is read as it lies there, by rows or by steps.
#pragma once
#include "kernels/products/matmul-pack.h"
#include "kernels/parallel.h"
#include "kernels/products/pieces.h"
#include "kernels/vector.h"

namespace opt::OPT_ISA {

// Rows and vectors of columns whose sums are held in registers.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int BLOCK_ROWS = 8;
#else
constexpr int BLOCK_ROWS = 4;
#endif
constexpr int BLOCK_VECTORS = 2;

template <typename T>
constexpr int64_t BLOCK_PANEL = BLOCK_VECTORS * LANES<T>;

/** Elements of `count` columns of a right side as panels, for one step: what lies beyond the last is 0. */
template <typename T>
constexpr int64_t paddedColumns(int64_t count) {
  return ceilDivide(count, static_cast<int64_t>(LANES<T>)) * LANES<T>;
}

/** The right side of a product: steps `begin` to `begin + depth` of the operand's columns, in panels. */
template <typename T>
inline void packRight(const Operand<T>& operand, int64_t firstColumn, int64_t columns, int64_t begin, int64_t depth, T* to) {
  for (int64_t column = 0; column < columns; column += BLOCK_PANEL<T>) {
    const int64_t count = smaller(BLOCK_PANEL<T>, columns - column), width = paddedColumns<T>(count);
    packSteps(operand, firstColumn + column, count, begin, depth, to + column * depth, width);
  }
}

/** The left side of a product: panels of BLOCK_ROWS rows, rows beyond the last are 0. */
template <typename T>
inline void packLeft(const Operand<T>& operand, int64_t firstRow, int64_t rows, int64_t depth, T* to) {
  for (int64_t row = 0; row < rows; row += BLOCK_ROWS) {
    packSteps(operand, firstRow + row, smaller<int64_t>(BLOCK_ROWS, rows - row), 0, depth, to + row * depth, BLOCK_ROWS);
  }
}

/** Element (row, step) of a left panel lies at row * ROW_STEP + step * DEPTH_STEP, where a 0 stands for `apart`. */
template <typename T, int64_t ROW_STEP, int64_t DEPTH_STEP, int VECTORS>
void blockTile(int64_t depth, const T* left, int64_t apart, const T* right, T* output, int64_t stride, int64_t rows, int64_t columns,
               bool add) {
  using V = Vector<T>;
  constexpr int COLUMNS = VECTORS * LANES<T>;
  V sums[BLOCK_ROWS][VECTORS] = {};
  const int64_t depthStep = DEPTH_STEP == 0 ? apart : DEPTH_STEP;
  const T* lines[BLOCK_ROWS];
  for (int r = 0; r < BLOCK_ROWS; r++) lines[r] = left + r * (ROW_STEP == 0 ? apart : ROW_STEP);
  for (int64_t k = 0; k < depth; k++) {
    V rights[VECTORS];
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++) rights[v] = loadVector<V>(right + v * LANES<T>);
#pragma GCC unroll 8
    for (int r = 0; r < BLOCK_ROWS; r++) {
      const V number = splat((ROW_STEP == 0 ? lines[r] : left + r * ROW_STEP) + k * depthStep);
#pragma GCC unroll 4
      for (int v = 0; v < VECTORS; v++) addProduct(sums[r][v], number, rights[v]);
    }
    right += COLUMNS;
  }
  if (columns == COLUMNS && rows == BLOCK_ROWS) {
#pragma GCC unroll 8
    for (int r = 0; r < BLOCK_ROWS; r++) {
#pragma GCC unroll 4
      for (int v = 0; v < VECTORS; v++) {
        T* to = output + r * stride + v * LANES<T>;
        storeVector(to, add ? V(loadVector<V>(to) + sums[r][v]) : sums[r][v]);
      }
    }
    return;
  }
  T all[BLOCK_ROWS][COLUMNS];
  std::memcpy(all, sums, sizeof all);
  for (int64_t r = 0; r < rows; r++) {
    T* to = output + r * stride;
    for (int64_t c = 0; c < columns; c++) to[c] = add ? to[c] + all[r][c] : all[r][c];
  }
}

/**
 * output = left x right, or added to it, a piece of the depth at a time. Panels of the left side lie `panelStep` apart; of its rows beyond `rows` anything may be
 * there, but it is read. The right side is packed. Steps that are not `of` these are skipped: their products are zeros.
 */
template <typename T, int64_t ROW_STEP, int64_t DEPTH_STEP>
inline void multiplyBlock(int64_t rows, int64_t columns, int64_t depth, const T* left, int64_t panelStep, const T* right, T* output,
                          int64_t stride, bool add, int64_t apart = 0, Range of = {0, INT64_MAX}) {
  for (int64_t column = 0; column < columns; column += BLOCK_PANEL<T>) {
    const int64_t count = smaller(BLOCK_PANEL<T>, columns - column);
    const auto tile = count <= LANES<T> ? blockTile<T, ROW_STEP, DEPTH_STEP, 1> : blockTile<T, ROW_STEP, DEPTH_STEP, BLOCK_VECTORS>;
    const int64_t pieces = larger<int64_t>(1, piecesOf<T>(depth));
    for (int64_t i = 0; i < pieces; i++) {
      Range steps = piece(depth, pieces, i);
      steps = {larger(steps.begin, of.begin), smaller(steps.end, of.end)};
      if (i > 0 && steps.size() <= 0) continue;
      const T* panel = right + column * depth + steps.begin * paddedColumns<T>(count);
      for (int64_t row = 0; row < rows; row += BLOCK_ROWS) {
        const int64_t least = smaller<int64_t>(BLOCK_ROWS, rows - row);
        const T* lines = left + row / BLOCK_ROWS * panelStep + steps.begin * (DEPTH_STEP == 0 ? apart : DEPTH_STEP);
        tile(steps.size(), lines, apart, panel, output + row * stride + column, stride, least, count, add || i > 0);
      }
    }
  }
}

/** Hands out parts of a thread's memory, each from a cache line on. */
template <typename T>
class Parts {
 public:
  explicit Parts(char* memory) : next_(memory) {}
  T* take(int64_t count) {
    T* const part = reinterpret_cast<T*>(next_);
    next_ += bytes(count);
    return part;
  }
  static int64_t bytes(int64_t count) { return ceilDivide(count * static_cast<int64_t>(sizeof(T)), 64) * 64; }

 private:
  char* next_;
};

}  // namespace opt::OPT_ISA
