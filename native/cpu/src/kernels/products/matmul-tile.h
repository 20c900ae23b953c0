// A tile of a product, held in registers while it is added up along k.
#pragma once
#include <array>
#include <utility>

#include "kernels/parallel.h"
#include "kernels/vector.h"

namespace opt::OPT_ISA {

// Sums of a full tile, the vectors of one step of the right side and one number of the left fill the registers.
#if defined(__AVX512F__)
constexpr int TILE_ROWS = 14, TILE_VECTORS = 2;
#elif defined(__AVX2__)
constexpr int TILE_ROWS = 6, TILE_VECTORS = 2;
#elif defined(__aarch64__)
constexpr int TILE_ROWS = 8, TILE_VECTORS = 3;
#else
constexpr int TILE_ROWS = 6, TILE_VECTORS = 2;
#endif

/**
 * Products of packed panels, stored or added to the first `columns` columns of rows that lie `stride` apart. Where all columns are stored,
 * the vectors of a row lie `apart`.
 */
template <typename T>
using Tile = void (*)(int64_t depth, const T* left, const T* right, T* output, int64_t stride, int64_t apart, int64_t columns, bool add);

template <typename T, int ROWS, int VECTORS>
void tile(int64_t depth, const T* left, const T* right, T* output, int64_t stride, int64_t apart, int64_t columns, bool add) {
  using V = Vector<T>;
  constexpr int COLUMNS = VECTORS * LANES<T>;
  V sums[ROWS][VECTORS] = {};
  for (int64_t k = 0; k < depth; k++) {
    V rights[VECTORS];
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++) rights[v] = loadVector<V>(right + v * LANES<T>);
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++) {
      const V number = splat(left + r);
#pragma GCC unroll 4
      for (int v = 0; v < VECTORS; v++) addProduct(sums[r][v], number, rights[v]);
    }
    left += ROWS;
    right += COLUMNS;
  }
  if (columns == COLUMNS) {
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++) {
#pragma GCC unroll 4
      for (int v = 0; v < VECTORS; v++) {
        T* to = output + r * stride + v * apart;
        storeVector(to, add ? V(loadVector<V>(to) + sums[r][v]) : sums[r][v]);
      }
    }
    return;
  }
  T all[ROWS][COLUMNS];
  std::memcpy(all, sums, sizeof all);
  for (int r = 0; r < ROWS; r++) {
    T* to = output + r * stride;
    for (int64_t c = 0; c < columns; c++) to[c] = add ? to[c] + all[r][c] : all[r][c];
  }
}

template <typename T, int... CASES>
constexpr std::array<Tile<T>, sizeof...(CASES)> tilesOf(std::integer_sequence<int, CASES...>) {
  return {tile<T, CASES / TILE_VECTORS + 1, CASES % TILE_VECTORS + 1>...};
}

/** The tile of `rows` rows, 1 to TILE_ROWS, and `vectors` vectors of columns, 1 to TILE_VECTORS. */
template <typename T>
inline Tile<T> tileOf(int64_t rows, int64_t vectors) {
  static constexpr auto TILES = tilesOf<T>(std::make_integer_sequence<int, TILE_ROWS * TILE_VECTORS>{});
  return TILES[static_cast<size_t>((rows - 1) * TILE_VECTORS + vectors - 1)];
}

}  // namespace opt::OPT_ISA
