// Batched matrix products. Both sides are copied into panels that fit the caches; tiles of the product are added up in registers.
// An element is added up in the same order whatever the blocks of rows and columns are, so results do not depend on the number of threads.
#include "commands.h"
#include "kernels/products/matmul-pack.h"
#include "kernels/products/matmul-row.h"
#include "kernels/products/matmul-tile.h"
#include "kernels/parallel.h"
#include "kernels/products/pieces.h"
#include "kernels/products/window-columns.h"
#include "kernels/rules/program.h"
#include "kernels/workspace.h"

namespace opt::OPT_ISA {
namespace {

// Multiplications that are worth a thread.
constexpr int64_t WORK = 1 << 18;
// What an element of an epilogue costs, in multiplications.
constexpr int64_t EPILOGUE_WORK = 16;
// Epilogues are fastest on whole rows. With fewer rows than these a thread, parts are of columns, at least so many.
constexpr int64_t EPILOGUE_ROWS = 64, EPILOGUE_COLUMNS = 64;
// Elements that wait in the first cache for the epilogue.
constexpr int64_t STRETCH = 4 * PROGRAM_BLOCK;
// Bytes of right panels that a part keeps in the second cache, and of left panels that all parts share.
constexpr int64_t RIGHT_BYTES = 256 << 10, LEFT_BYTES = 2 << 20;
// Elements of products of pieces of k that threads share out.
constexpr int64_t PIECES = 1 << 18;
// Parts a thread, so that the last ones even out.
constexpr int64_t PARTS = 4;

/** Packed panels, and products that are not stored. */
thread_local Workspace workspace, products;

/** How products of one m x k by `items` of k x n are cut. */
template <typename T>
struct Blocks {
  static constexpr int64_t PANEL = TILE_VECTORS * LANES<T>;

  Blocks(int64_t m, int64_t n, int64_t k, int64_t items, int64_t threads, bool hasEpilogue)
      : m(m), n(n), k(k), threads(threads), items(items) {
    depths = piecesOf<T>(k);
    depth = ceilDivide(k, depths);
    const int64_t rowBytes = depth * static_cast<int64_t>(sizeof(T));
    rowBlocks = ceilDivide(m, larger<int64_t>(TILE_ROWS, LEFT_BYTES / rowBytes));
    columnPanels = ceilDivide(n, PANEL);
    together = n == LANES<T> ? smaller<int64_t>(TILE_VECTORS, items) : 1;
    const int64_t most = larger<int64_t>(1, RIGHT_BYTES / (rowBytes * PANEL));
    const int64_t wanted = threads == 1 ? 1 : threads * PARTS;
    const bool ofRows = columnPanels <= most && m >= threads * EPILOGUE_ROWS;
    const int64_t least = !hasEpilogue ? 1 : ofRows ? columnPanels : ceilDivide(smaller(n, EPILOGUE_COLUMNS), PANEL);
    panels = ceilDivide(items, together) * columnPanels;
    group = smaller(most, larger(least, panels / wanted));
    groups = ceilDivide(panels, group);
    // Where there are too few columns for all threads, rows are shared out too: each part packs its own right panels.
    rowShares = groups >= threads ? 1 : ceilDivide(threads, groups);
    // The panels of the largest block of rows, and of a group of columns: whole cache lines.
    leftSize = ceilDivide(ceilDivide(m, rowBlocks) * depth, PANEL) * PANEL;
    rightSize = group * PANEL * depth;
  }

  struct Place {
    int64_t item, column, columns, width;
    /** Of the width, each item's. */
    int64_t each;
  };

  /** Which columns of which item a panel has, and its width in whole vectors. Where an item is one vector, the next items are in the panel, too. */
  Place place(int64_t panel) const {
    if (together > 1) {
      const int64_t item = panel * together, columns = smaller(together, items - item) * LANES<T>;
      return {item, 0, columns, columns, LANES<T>};
    }
    const int64_t column = panel % columnPanels * PANEL, columns = smaller(PANEL, n - column);
    const int64_t width = ceilDivide(columns, LANES<T>) * LANES<T>;
    return {panel / columnPanels, column, columns, width, width};
  }

  /** From a vector of a panel's row to the next one, in the output. */
  int64_t apart() const { return together > 1 ? m * n : LANES<T>; }

  int64_t m, n, k, threads, items, together;
  int64_t depths, depth, rowBlocks, columnPanels, panels, group, groups, rowShares, leftSize, rightSize;
};

/** The right sides of products that share the left one: matrices `stride` apart. */
template <typename T>
struct Matrices {
  Operand<T> first;
  int64_t stride;

  Operand<T> of(int64_t item) const { return {first.data + item * stride, first.stride, first.consecutive}; }
};

/** Panels `first` to `last` of all items, for steps `begin` to `begin + depth`. */
template <typename T>
void packPanels(const Matrices<T>& matrices, const Blocks<T>& blocks, int64_t first, int64_t last, int64_t begin, int64_t depth, T* right) {
  constexpr int64_t PANEL = Blocks<T>::PANEL;
  for (int64_t k = 0; k < depth; k += PACKED_STEPS) {
    for (int64_t panel = first; panel < last; panel++) {
      const auto [item, column, columns, width, each] = blocks.place(panel);
      const int64_t steps = smaller(PACKED_STEPS, depth - k);
      T* packed = right + (panel - first) * PANEL * depth + k * width;
      for (int64_t i = 0; i < width; i += each) {
        packSteps(matrices.of(item + i / each), column, smaller(columns, each), begin + k, steps, packed + i, width, each);
      }
    }
  }
}

template <typename T>
void packPanels(const WindowColumns<T>& windows, const Blocks<T>& blocks, int64_t first, int64_t last, int64_t begin, int64_t depth, T* right) {
  constexpr int64_t PANEL = Blocks<T>::PANEL;
  for (int64_t panel = first; panel < last; panel++) {
    const auto [item, column, columns, width, each] = blocks.place(panel);
    T* packed = right + (panel - first) * PANEL * depth;
    for (int64_t i = 0; i < width; i += each) {
      packPanel<T, PANEL>(windows, item + i / each, column, smaller(columns, each), begin, depth, packed + i, width, each);
    }
  }
}

/**
 * Products of one left side. `leftPanels` is for all threads, each has its own part of `rightPanels`. Calls
 * `finish(item, rows, columns, thread)` for each stretch of elements, in the thread that computed it.
 */
template <typename T, typename Left, typename Right, typename Finish>
void multiply(const Left& a, const Right& b, T* output, const Blocks<T>& blocks, T* leftPanels, T* rightPanels,
              const Finish& finish) {
  constexpr int64_t PANEL = Blocks<T>::PANEL;
  const int64_t n = blocks.n;
  for (int64_t rowBlock = 0; rowBlock < blocks.rowBlocks; rowBlock++) {
    const Range rows = piece(blocks.m, blocks.rowBlocks, rowBlock);
    const int64_t rowPanels = ceilDivide(rows.size(), TILE_ROWS);
    for (int64_t depthBlock = 0; depthBlock < blocks.depths; depthBlock++) {
      const Range depths = piece(blocks.k, blocks.depths, depthBlock);
      const int64_t depth = depths.size();
      const int threads = static_cast<int>(blocks.threads);
      parallelFor(rowPanels, ceilDivide(rowPanels, blocks.threads), threads, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; p++) {
          const auto [from, to] = piece(rows.size(), rowPanels, p);
          for (int64_t k = 0; k < depth; k += PACKED_STEPS) {
            T* panel = leftPanels + from * depth + k * (to - from);
            packSteps(a, rows.begin + from, to - from, depths.begin + k, smaller(PACKED_STEPS, depth - k), panel, to - from);
          }
        }
      });
      parallelFor(blocks.groups * blocks.rowShares, 1, threads, [&](int64_t part, int64_t, int thread) {
        const int64_t group = part / blocks.rowShares;
        const int64_t first = group * blocks.group, last = smaller(first + blocks.group, blocks.panels);
        const Range share = piece(rowPanels, blocks.rowShares, part % blocks.rowShares);
        T* right = rightPanels + thread * blocks.rightSize;
        packPanels(b, blocks, first, last, depths.begin, depth, right);
        int64_t finished = 0;
        for (int64_t p = share.begin; p < share.end; p++) {
          const auto [from, to] = piece(rows.size(), rowPanels, p);
          for (int64_t panel = first; panel < last; panel++) {
            const auto [item, column, columns, width, each] = blocks.place(panel);
            const Tile<T> tile = tileOf<T>(to - from, width / LANES<T>);
            T* corner = output + (item * blocks.m + rows.begin + from) * n + column;
            tile(depth, leftPanels + from * depth, right + (panel - first) * PANEL * depth, corner, n, blocks.apart(), columns, depthBlock > 0);
          }
          if (p == share.begin) finished = from;
          const bool isStretch = (to - finished) * (last - first) * PANEL >= STRETCH || p + 1 == share.end;
          if (depthBlock + 1 < blocks.depths || !isStretch) continue;
          const Range done{rows.begin + finished, rows.begin + to};
          for (int64_t item = first / blocks.columnPanels * blocks.together; item < blocks.items; item++) {
            const int64_t own = item / blocks.together * blocks.columnPanels;
            if (own >= last) break;
            const int64_t begin = larger(first, own) - own, end = smaller(last, own + blocks.columnPanels) - own;
            finish(item, done, Range{begin * PANEL, smaller(end * PANEL, n)}, thread);
          }
          finished = to;
        }
      });
    }
  }
}

/**
 * The same of one product of few elements and many pieces of k: threads take pieces, and what each gives is added up afterwards, in order.
 * `leftPanels` and `rightPanels` have a part for each thread, and `pieces` room for the product of each piece.
 */
template <typename T, typename Left, typename Right>
void multiplyByPieces(const Left& a, const Right& b, T* output, const Blocks<T>& blocks, T* leftPanels, T* rightPanels, T* pieces) {
  constexpr int64_t PANEL = Blocks<T>::PANEL;
  const int64_t m = blocks.m, n = blocks.n, size = m * n, rowPanels = ceilDivide(m, TILE_ROWS);
  const int threads = static_cast<int>(blocks.threads);
  parallelFor(blocks.depths, 1, threads, [&](int64_t part, int64_t, int thread) {
    const Range depths = piece(blocks.k, blocks.depths, part);
    const int64_t depth = depths.size();
    T *left = leftPanels + thread * blocks.leftSize, *right = rightPanels + thread * blocks.rightSize;
    for (int64_t first = 0; first < blocks.panels; first += blocks.group) {
      const int64_t last = smaller(first + blocks.group, blocks.panels);
      packPanels(b, blocks, first, last, depths.begin, depth, right);
      for (int64_t p = 0; p < rowPanels; p++) {
        const auto [from, to] = piece(m, rowPanels, p);
        T* rows = left + from * depth;
        for (int64_t k = 0; first == 0 && k < depth; k += PACKED_STEPS) {
          packSteps(a, from, to - from, depths.begin + k, smaller(PACKED_STEPS, depth - k), rows + k * (to - from), to - from);
        }
        for (int64_t panel = first; panel < last; panel++) {
          const auto [item, column, columns, width, each] = blocks.place(panel);
          const Tile<T> tile = tileOf<T>(to - from, width / LANES<T>);
          tile(depth, rows, right + (panel - first) * PANEL * depth, pieces + part * size + from * n + column, n, LANES<T>, columns, false);
        }
      }
    }
  });
  parallelFor(size, grainOf(blocks.depths), threads, [&](int64_t begin, int64_t end) {
    std::memcpy(output + begin, pieces + begin, sizeof(T) * static_cast<size_t>(end - begin));
    for (int64_t part = 1; part < blocks.depths; part++) {
      OPT_INDEPENDENT
      for (int64_t i = begin; i < end; i++) output[i] += pieces[part * size + i];
    }
  });
}

template <typename T>
struct Product : MatmulFields<T> {
  Operand<T> left(int64_t item) const {
    return {this->a + item * this->strideA, this->transposeA ? this->m : this->k, !this->transposeA};
  }
  Operand<T> right(int64_t item) const {
    return {this->b + item * this->strideB, this->transposeB ? this->k : this->n, this->transposeB};
  }
};

/** Products of which one side is a single row or column, whose numbers are consecutive either way. */
template <typename T>
void multiplyVectors(const Product<T>& product, int64_t threads, Epilogue<T>* epilogue) {
  const bool row = product.m == 1;
  const int64_t length = row ? product.n : product.m;
  // Long runs of neighbours, and whole cache lines of the output.
  constexpr int64_t UNIT = 64;
  const int64_t grain = ceilDivide(larger(WORK / product.k, ceilDivide(length, threads)), UNIT) * UNIT;
  const int64_t pieces = ceilDivide(length, grain);
  parallelFor(product.batch * pieces, 1, static_cast<int>(threads), [&](int64_t part, int64_t, int thread) {
    const int64_t item = part / pieces, begin = part % pieces * grain, end = smaller(length, begin + grain);
    const T* vector = row ? product.left(item).data : product.right(item).data;
    Operand<T> matrix = row ? product.right(item) : product.left(item);
    // A single column lies along k either way.
    if (length == 1) matrix.consecutive = true;
    multiplyRow(vector, matrix, product.k, product.output + item * length, begin, end);
    if (epilogue == nullptr) return;
    epilogue->apply(row ? Box{item, 0, begin, 1, end - begin} : Box{item, begin, 0, end - begin, 1}, thread);
  });
}

/** All items. The epilogue may be null. */
template <typename T>
Status multiplyAll(const Product<T>& product, int64_t threads, Epilogue<T>* epilogue) {
  const int64_t batch = product.batch, m = product.m, n = product.n, k = product.k;
  if (k == 0) {
    std::memset(product.output, 0, sizeof(T) * static_cast<size_t>(batch * m * n));
    return Status::OK;
  }
  if ((m == 1 || n == 1) && product.window.count == 0) {
    multiplyVectors(product, threads, epilogue);
    return Status::OK;
  }
  const bool isOne = product.strideA == 0 || product.window.count > 0;
  // Threads take items where there are enough of them, and else share each one. Items with the same left side are one product.
  const bool shareItems = batch < threads || isOne;
  const int64_t items = isOne ? batch : 1;
  const Blocks<T> blocks(m, n, k, items, shareItems ? threads : 1, epilogue != nullptr);
  const bool areMany = blocks.depths >= PARTS * threads && blocks.depths * m * n <= PIECES && blocks.rowBlocks == 1;
  const bool byPieces = product.window.count > 0 && product.transposeB && areMany;
  const int64_t lefts = shareItems && !byPieces ? 1 : threads;
  const int64_t ofPieces = byPieces ? blocks.depths * m * n : 0;
  const int64_t bytes = static_cast<int64_t>(sizeof(T)) * (lefts * blocks.leftSize + threads * blocks.rightSize + ofPieces);
  T* const panels = reinterpret_cast<T*>(workspace.reserve(bytes));
  if (panels == nullptr) return Status::OUT_OF_MEMORY;
  T* const rights = panels + lefts * blocks.leftSize;
  T* const pieces = rights + threads * blocks.rightSize;
  // Of items from `first` on, in the threads from `own` on.
  const auto finishFrom = [&](int64_t first, int own) {
    return [=](int64_t item, Range rows, Range columns, int thread) {
      if (epilogue) epilogue->apply({first + item, rows.begin, columns.begin, rows.size(), columns.size()}, own + thread);
    };
  };
  const auto multiplyItem = [&](int64_t i, T* left, T* right, int own) {
    const Matrices<T> matrices{product.right(i), product.strideB};
    multiply(product.left(i), matrices, product.output + i * m * n, blocks, left, right, finishFrom(i, own));
  };
  if (product.window.count > 0) {
    Command command(product.window.data);
    const Window window{WindowFields(command)};
    const auto finish = finishFrom(0, 0);
    const auto multiplyBy = [&](const auto& left, const auto& right) {
      if (!byPieces) return multiply(left, right, product.output, blocks, panels, rights, finish);
      multiplyByPieces(left, right, product.output, blocks, panels, rights, pieces);
      finish(0, Range{0, m}, Range{0, n}, 0);
    };
    const WindowColumns<T> columns{product.b, window, product.transposeB};
    if (product.transposeB) {
      multiplyBy(ImageRows<T>{product.a, m, window.outPlane()}, columns);
    } else {
      multiplyBy(product.left(0), columns);
    }
  } else if (shareItems) {
    for (int64_t i = 0; i < batch; i += items) multiplyItem(i, panels, rights, 0);
  } else {
    const int64_t grain = larger<int64_t>(1, batch / (threads * PARTS));
    parallelFor(batch, grain, static_cast<int>(threads), [&](int64_t begin, int64_t end, int thread) {
      for (int64_t i = begin; i < end; i++) multiplyItem(i, panels + thread * blocks.leftSize, rights + thread * blocks.rightSize, thread);
    });
  }
  workspace.trim();
  return Status::OK;
}

template <typename T>
Status matmul(const MatmulFields<T>& given, int most) {
  Product<T> product{given};
  const int64_t m = product.m, n = product.n, size = product.batch * m * n;
  const Status summed = run(given.sums, most);
  if (summed != Status::OK || size == 0) return summed;
  const bool hasEpilogue = given.code != nullptr;
  const int64_t work = size * (product.k + (hasEpilogue ? EPILOGUE_WORK : 0));
  const int64_t threads = larger<int64_t>(1, smaller<int64_t>(most, work / WORK));
  if (!hasEpilogue) return multiplyAll<T>(product, threads, nullptr);

  const auto epilogue = epilogueOf(given, most);
  if (!epilogue) return Status::OUT_OF_MEMORY;
  if (epilogue->product == nullptr) epilogue->product = reinterpret_cast<T*>(products.reserve(static_cast<int64_t>(sizeof(T)) * size));
  if (epilogue->product == nullptr) return Status::OUT_OF_MEMORY;
  product.output = epilogue->product;
  // A block holds many small items.
  const bool isAfter = product.k == 0 || m * n < PROGRAM_BLOCK;
  const Status status = multiplyAll<T>(product, threads, isAfter ? nullptr : epilogue.get());
  if (isAfter && status == Status::OK) {
    parallelFor(size, WORK / EPILOGUE_WORK, static_cast<int>(threads), [&](int64_t begin, int64_t end, int thread) {
      epilogue->applyTo(begin, end, thread);
    });
  }
  products.trim();
  return status;
}

}  // namespace

OPT_RUN(MatmulFields, matmul)

}  // namespace opt::OPT_ISA
