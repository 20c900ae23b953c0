// Batched matrix products by Eigen, split into panels of rows or columns.
#include <Eigen/Core>
#include <atomic>
#include <new>

#include "kernels/command.h"
#include "kernels/parallel.h"

namespace opt::OPT_ISA {
namespace {

/** A panel of a matrix in memory, whose rows (columns where it is stored transposed) are `stride` elements apart. */
template <typename T, bool TRANSPOSED>
using Panel = Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, TRANSPOSED ? Eigen::ColMajor : Eigen::RowMajor>,
                         Eigen::Unaligned, Eigen::OuterStride<>>;

struct Sizes {
  int64_t batch, m, n, k, strideA, strideB;
};

// Multiplications that are worth a thread.
constexpr int64_t WORK = 1 << 19;
// Panels end where Eigen's register tiles do (4 rows, and 3 vectors of columns): each element is added up in the order of k by the
// same loop, whatever the panels are, and results do not depend on the number of threads.
constexpr int64_t ROWS = 16, COLUMNS = 48;

template <typename T, bool TRANSPOSE_A, bool TRANSPOSE_B>
Status multiply(Command& command, const Sizes& sizes) {
  T* a = command.pointer<T>();
  T* b = command.pointer<T>();
  T* output = command.pointer<T>();
  const auto [batch, m, n, k, strideA, strideB] = sizes;
  if (batch * m * n == 0) return Status::OK;
  // One panel a thread, because each packs the other operand anew.
  const bool splitRows = m >= n;
  const int64_t side = splitRows ? m : n;
  const int64_t threads = batch >= command.threads ? 1 : command.threads;
  const int64_t wanted = larger<int64_t>(1, smaller(threads, m * n * k / WORK));
  const int64_t unit = splitRows ? ROWS : COLUMNS;
  const int64_t panel = ceilDivide(ceilDivide(side, wanted), unit) * unit;
  const int64_t panels = ceilDivide(side, panel);
  const int64_t grain = larger<int64_t>(1, WORK / larger<int64_t>(1, m * n * k / panels));
  std::atomic<bool> failed{false};
  parallelFor(batch * panels, grain, command.threads, [&](int64_t begin, int64_t end) {
    try {
      for (int64_t item = begin; item < end; item++) {
        const int64_t i = item / panels, from = item % panels * panel, count = smaller(panel, side - from);
        const int64_t row = splitRows ? from : 0, column = splitRows ? 0 : from;
        const int64_t rows = splitRows ? count : m, columns = splitRows ? n : count;
        const Panel<T, TRANSPOSE_A> left(a + i * strideA + row * (TRANSPOSE_A ? 1 : k), rows, k, Eigen::OuterStride<>(TRANSPOSE_A ? m : k));
        const Panel<T, TRANSPOSE_B> right(b + i * strideB + column * (TRANSPOSE_B ? k : 1), k, columns,
                                          Eigen::OuterStride<>(TRANSPOSE_B ? k : n));
        Panel<T, false> result(output + (i * m + row) * n + column, rows, columns, Eigen::OuterStride<>(n));
        result.noalias() = left * right;
      }
    } catch (const std::bad_alloc&) {
      failed = true;
    }
  });
  return failed ? Status::OUT_OF_MEMORY : Status::OK;
}

template <typename T>
Status matmul(Command& command) {
  const bool transposeA = command.flag(), transposeB = command.flag();
  Sizes sizes;
  for (int64_t* size : {&sizes.batch, &sizes.m, &sizes.n, &sizes.k, &sizes.strideA, &sizes.strideB}) *size = command.integer();
  if (transposeA) return transposeB ? multiply<T, true, true>(command, sizes) : multiply<T, true, false>(command, sizes);
  return transposeB ? multiply<T, false, true>(command, sizes) : multiply<T, false, false>(command, sizes);
}

}  // namespace

Status runMatmul(Command& command) { return command.flag() ? matmul<double>(command) : matmul<float>(command); }

}  // namespace opt::OPT_ISA
