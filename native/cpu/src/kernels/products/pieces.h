// How products are cut along k. An element of a product is a chain of fused multiply-adds in each piece; the pieces' sums are added in order.
// core's js/matmul.ts defines it.
#pragma once
#include "kernels/parallel.h"

namespace opt::OPT_ISA {

struct Range {
  int64_t begin, end;

  int64_t size() const { return end - begin; }
};

/** Piece number `i` when `size` is cut into `pieces` as equal as can be. */
inline Range piece(int64_t size, int64_t pieces, int64_t i) { return {size * i / pieces, size * (i + 1) / pieces}; }

/** Pieces of `k` steps: a chain is at most 2 KiB of a row, so a left panel of a tile fits the first cache. */
template <typename T>
constexpr int64_t piecesOf(int64_t k) {
  return ceilDivide(k, 2048 / static_cast<int64_t>(sizeof(T)));
}

}  // namespace opt::OPT_ISA
