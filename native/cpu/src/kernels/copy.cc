// Strided copy and cast between all dtypes.
#include "kernels/arithmetic.h"
#include "kernels/command.h"
#include "kernels/loops.h"
#include "kernels/parallel.h"
#include "kernels/stored.h"

namespace opt::OPT_ISA {
namespace {

// Side of the square tiles in which matrices are transposed: a cache line of each of its rows is used whole.
constexpr int64_t TILE = 32;

struct Walk {
  int64_t rank;
  const double *shape, *sourceStrides, *targetStrides;

  int64_t extent(int64_t d) const { return static_cast<int64_t>(shape[d]); }
  int64_t sourceStride(int64_t d) const { return static_cast<int64_t>(sourceStrides[d]); }
  int64_t targetStride(int64_t d) const { return static_cast<int64_t>(targetStrides[d]); }
};

inline int64_t magnitude(int64_t stride) { return stride < 0 ? -stride : stride; }

template <typename From, typename To>
void copyRow(const From* source, int64_t sourceStep, To* target, int64_t targetStep, int64_t n) {
  if (sourceStep == 1 && targetStep == 1) {
    OPT_INDEPENDENT
    for (int64_t i = 0; i < n; i++) target[i] = convert<From, To>(source[i]);
  } else {
    for (int64_t i = 0; i < n; i++) target[i * targetStep] = convert<From, To>(source[i * sourceStep]);
  }
}

/** One strip of TILE rows of the last two dimensions, tile by tile: the source runs along their first, the target along their second. */
template <typename From, typename To>
void copyStrip(const From* source, const Walk& walk, To* target, int64_t firstRow) {
  const int64_t d = walk.rank - 2, rows = walk.extent(d), columns = walk.extent(d + 1);
  const int64_t sourceColumn = walk.sourceStride(d + 1), targetColumn = walk.targetStride(d + 1);
  for (int64_t c = 0; c < columns; c += TILE) {
    for (int64_t i = firstRow; i < smaller(rows, firstRow + TILE); i++) {
      copyRow(source + i * walk.sourceStride(d) + c * sourceColumn, sourceColumn,
              target + i * walk.targetStride(d) + c * targetColumn, targetColumn, smaller(TILE, columns - c));
    }
  }
}

template <typename From, typename To>
Status copy(Command& command) {
  Walk walk;
  walk.rank = command.integer();
  walk.shape = command.numbers(walk.rank);
  walk.sourceStrides = command.numbers(walk.rank);
  walk.targetStrides = command.numbers(walk.rank);
  const From* source = command.pointer<const From>();
  To* target = command.pointer<To>();
  if (walk.rank == 1) {
    const int64_t sourceStep = walk.sourceStride(0), targetStep = walk.targetStride(0);
    parallelFor(walk.extent(0), 65536, command.threads, [=](int64_t begin, int64_t end) {
      copyRow(source + begin * sourceStep, sourceStep, target + begin * targetStep, targetStep, end - begin);
    });
    return Status::OK;
  }
  const int64_t last = walk.rank - 1;
  const bool transposed = magnitude(walk.sourceStride(last)) > magnitude(walk.sourceStride(last - 1));
  // An item is a row, or where the source is transposed a strip of them.
  const int64_t strips = transposed ? ceilDivide(walk.extent(last - 1), TILE) : 1;
  const int64_t outerRank = transposed ? last - 1 : last;
  int64_t outer = 1;
  for (int64_t d = 0; d < outerRank; d++) outer *= walk.extent(d);
  const int64_t cost = walk.extent(last) * (transposed ? TILE : 1);
  parallelFor(outer * strips, grainOf(cost), command.threads, [=](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; item++) {
      int64_t rest = item / strips, from = 0, to = 0;
      for (int64_t d = outerRank - 1; d >= 0; d--) {
        const int64_t position = rest % walk.extent(d);
        rest /= walk.extent(d);
        from += position * walk.sourceStride(d);
        to += position * walk.targetStride(d);
      }
      if (transposed) {
        copyStrip(source + from, walk, target + to, item % strips * TILE);
      } else {
        copyRow(source + from, walk.sourceStride(last), target + to, walk.targetStride(last), walk.extent(last));
      }
    }
  });
  return Status::OK;
}

template <typename From>
Status copyFrom(Command& command, DType to) {
  switch (to) {
    case DType::F32: return copy<From, float>(command);
    case DType::F64: return copy<From, double>(command);
    case DType::F16: return copy<From, Half>(command);
    case DType::BF16: return copy<From, BFloat>(command);
    case DType::I32: return copy<From, int32_t>(command);
    case DType::U8: return copy<From, uint8_t>(command);
    case DType::BOOL: return copy<From, Bool>(command);
  }
  return Status::BAD_COMMAND;
}

}  // namespace

Status runCopy(Command& command) {
  const auto from = static_cast<DType>(command.integer()), to = static_cast<DType>(command.integer());
  switch (from) {
    case DType::F32: return copyFrom<float>(command, to);
    case DType::F64: return copyFrom<double>(command, to);
    case DType::F16: return copyFrom<Half>(command, to);
    case DType::BF16: return copyFrom<BFloat>(command, to);
    case DType::I32: return copyFrom<int32_t>(command, to);
    case DType::U8: return copyFrom<uint8_t>(command, to);
    case DType::BOOL: return copyFrom<Bool>(command, to);
  }
  return Status::BAD_COMMAND;
}

}  // namespace opt::OPT_ISA
