// Strided copy and cast between all dtypes.
#include "commands.h"
#include "kernels/arithmetic.h"
#include "kernels/loops.h"
#include "kernels/parallel.h"
#include "kernels/stored.h"

namespace opt::OPT_ISA {
namespace {

// Side of the square tiles in which matrices are transposed: a cache line of each of its rows is used whole.
constexpr int64_t TILE = 32;

struct Walk : WalkFields {
  explicit Walk(const WalkFields& fields) : WalkFields(fields), rank(shape.count) {}

  const int64_t rank;

  int64_t extent(int64_t d) const { return static_cast<int64_t>(shape[d]); }
  int64_t sourceStride(int64_t d) const { return static_cast<int64_t>(sourceStrides[d]); }
  int64_t targetStride(int64_t d) const { return static_cast<int64_t>(targetStrides[d]); }
};

inline int64_t magnitude(int64_t stride) { return stride < 0 ? -stride : stride; }

/** A row of `n` elements; steps count elements. */
using CopyRow = void (*)(const char* source, int64_t sourceStep, char* target, int64_t targetStep, int64_t n);

/** How rows are copied from one dtype to another. All that walks over them knows bytes alone, and is compiled once for all pairs. */
struct Cast {
  CopyRow row = nullptr;
  int64_t sourceBytes = 0, targetBytes = 0;
};

template <typename From, typename To>
void copyRow(const char* sourceRow, int64_t sourceStep, char* targetRow, int64_t targetStep, int64_t n) {
  const From* source = reinterpret_cast<const From*>(sourceRow);
  To* target = reinterpret_cast<To*>(targetRow);
  if (sourceStep == 1 && targetStep == 1) {
    OPT_INDEPENDENT
    for (int64_t i = 0; i < n; i++) target[i] = convert<From, To>(source[i]);
  } else {
    for (int64_t i = 0; i < n; i++) target[i * targetStep] = convert<From, To>(source[i * sourceStep]);
  }
}

/** One strip of TILE rows of the last two dimensions, tile by tile: the source runs along their first, the target along their second. */
void copyStrip(const Cast& cast, const char* source, const Walk& walk, char* target, int64_t firstRow) {
  const int64_t d = walk.rank - 2, rows = walk.extent(d), columns = walk.extent(d + 1);
  const int64_t sourceColumn = walk.sourceStride(d + 1), targetColumn = walk.targetStride(d + 1);
  for (int64_t c = 0; c < columns; c += TILE) {
    for (int64_t i = firstRow; i < smaller(rows, firstRow + TILE); i++) {
      cast.row(source + (i * walk.sourceStride(d) + c * sourceColumn) * cast.sourceBytes, sourceColumn,
               target + (i * walk.targetStride(d) + c * targetColumn) * cast.targetBytes, targetColumn,
               smaller(TILE, columns - c));
    }
  }
}

template <typename From, typename To>
Cast castOf() {
  return {copyRow<From, To>, sizeof(From), sizeof(To)};
}

template <typename From>
Cast castFrom(Format to) {
  switch (to) {
    case Format::F32: return castOf<From, float>();
    case Format::F64: return castOf<From, double>();
    case Format::F16: return castOf<From, Half>();
    case Format::BF16: return castOf<From, BFloat>();
    case Format::I32: return castOf<From, int32_t>();
    case Format::U8: return castOf<From, uint8_t>();
    case Format::BOOL: return castOf<From, Bool>();
    default: return {};
  }
}

Cast castBetween(Format from, Format to) {
  switch (from) {
    case Format::F32: return castFrom<float>(to);
    case Format::F64: return castFrom<double>(to);
    case Format::F16: return castFrom<Half>(to);
    case Format::BF16: return castFrom<BFloat>(to);
    case Format::I32: return castFrom<int32_t>(to);
    case Format::U8: return castFrom<uint8_t>(to);
    case Format::BOOL: return castFrom<Bool>(to);
    default: return {};
  }
}

}  // namespace

Status run(const CopyFields& given, int threads) {
  const Cast cast = castBetween(static_cast<Format>(given.from), static_cast<Format>(given.to));
  if (cast.row == nullptr) return Status::BAD_COMMAND;
  const Walk walk(given.walk);
  const char* source = given.source;
  char* target = given.target;
  if (walk.rank == 1) {
    const int64_t sourceStep = walk.sourceStride(0), targetStep = walk.targetStride(0);
    parallelFor(walk.extent(0), 65536, threads, [=](int64_t begin, int64_t end) {
      cast.row(source + begin * sourceStep * cast.sourceBytes, sourceStep,
               target + begin * targetStep * cast.targetBytes, targetStep, end - begin);
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
  parallelFor(outer * strips, grainOf(cost), threads, [=](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; item++) {
      int64_t rest = item / strips, from = 0, to = 0;
      for (int64_t d = outerRank - 1; d >= 0; d--) {
        const int64_t position = rest % walk.extent(d);
        rest /= walk.extent(d);
        from += position * walk.sourceStride(d);
        to += position * walk.targetStride(d);
      }
      const char* sourceRow = source + from * cast.sourceBytes;
      char* targetRow = target + to * cast.targetBytes;
      if (transposed) {
        copyStrip(cast, sourceRow, walk, targetRow, item % strips * TILE);
      } else {
        cast.row(sourceRow, walk.sourceStride(last), targetRow, walk.targetStride(last), walk.extent(last));
      }
    }
  });
  return Status::OK;
}

}  // namespace opt::OPT_ISA
