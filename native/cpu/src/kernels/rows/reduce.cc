// Reductions over the middle axis of [outer, length, inner], accumulated in double, and sums of squares of a list of tensors.
#include "commands.h"
#include "kernels/parallel.h"
#include "kernels/rows/rows.h"
#include "kernels/stored.h"

namespace opt::OPT_ISA {
namespace {

// Neighbouring columns that are reduced together where the axis is not the last.
constexpr int64_t TILE = 64;

/** Sums of one tile of columns over rows `begin` to `end`. */
template <typename T>
void sumTile(const T* x, int64_t inner, int64_t begin, int64_t end, int64_t width, double* sums) {
  if (inner == 1) {
    *sums = sumOfChunk(begin, end, [x](int64_t i) { return static_cast<double>(x[i]); });
    return;
  }
  double tile[TILE] = {};
  for (int64_t row = begin; row < end; row++) {
    const T* values = x + row * inner;
    OPT_INDEPENDENT
    for (int64_t j = 0; j < width; j++) tile[j] += static_cast<double>(values[j]);
  }
  for (int64_t j = 0; j < width; j++) sums[j] = tile[j];
}

template <typename T>
Status reduceSum(const ReduceFields<T>& given, bool mean, int threads) {
  const int64_t outer = given.outer, length = given.length, inner = given.inner;
  const T* input = given.input;
  T* output = reinterpret_cast<T*>(given.output);
  const int64_t tiles = ceilDivide(inner, TILE);
  const int64_t rowsPerChunk = rowsOfChunk(inner);
  const int64_t chunks = larger<int64_t>(1, ceilDivide(length, rowsPerChunk));
  // partial[(o * chunks + chunk) * inner + i]
  Scratch<double> partial(outer * chunks * inner);
  if (!partial) return Status::OUT_OF_MEMORY;
  double* partials = partial.data();
  const int64_t items = outer * chunks * tiles;
  const int64_t cost = smaller(inner, TILE) * smaller(length, rowsPerChunk);
  parallelFor(items, grainOf(cost), threads, [=](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; item++) {
      const int64_t tile = item % tiles, rest = item / tiles, chunk = rest % chunks, o = rest / chunks;
      const int64_t first = tile * TILE;
      sumTile(input + o * length * inner + first, inner, chunk * rowsPerChunk, smaller(length, (chunk + 1) * rowsPerChunk),
              smaller(TILE, inner - first), partials + rest * inner + first);
    }
  });
  const auto divisor = mean ? static_cast<double>(length) : 1.0;
  parallelFor(outer, grainOf(chunks * inner), threads, [=](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; o++) {
      double* sums = partials + o * chunks * inner;
      for (int64_t chunk = 1; chunk < chunks; chunk++) {
        for (int64_t i = 0; i < inner; i++) sums[i] += sums[chunk * inner + i];
      }
      for (int64_t i = 0; i < inner; i++) output[o * inner + i] = static_cast<T>(sums[i] / divisor);
    }
  });
  return Status::OK;
}

/** Position of the largest: the first of equals, or the first NaN. */
template <typename T>
int64_t argmaxOf(const T* x, int64_t length, int64_t step) {
  int64_t best = 0;
  for (int64_t i = 1; i < length && x[best * step] == x[best * step]; i++) {
    const T value = x[i * step];
    if (value > x[best * step] || value != value) best = i;
  }
  return best;
}

template <typename T>
Status reduceMax(const ReduceFields<T>& given, bool position, int threads) {
  const int64_t length = given.length, inner = given.inner;
  const T* input = given.input;
  void* output = given.output;
  parallelFor(given.outer * inner, grainOf(length), threads, [=](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; item++) {
      const T* x = input + item / inner * length * inner + item % inner;
      if (position) {
        static_cast<int32_t*>(output)[item] = static_cast<int32_t>(length == 0 ? 0 : argmaxOf(x, length, inner));
      } else {
        const T largest = length == 0 ? T(NAN) : inner == 1 ? largestOf(x, length) : x[argmaxOf(x, length, inner) * inner];
        static_cast<T*>(output)[item] = largest + T(0);
      }
    }
  });
  return Status::OK;
}

/** Of elements that are stored so, in T. With `nonFinite` the sum of their differences from themselves: 0, or NaN. */
template <typename T, typename Stored>
Status sumSquares(const SumSquaresFields& given, int threads) {
  const Numbers lengths = given.lengths;
  const int64_t tensors = lengths.count;
  T* output = reinterpret_cast<T*>(given.output);
  int64_t chunks = 0;
  for (int64_t t = 0; t < tensors; t++) chunks += ceilDivide(static_cast<int64_t>(lengths[t]), CHUNK);
  struct Piece {
    const Stored* x;
    int64_t length;
    double sum;
  };
  Scratch<Piece> pieces(chunks);
  if (!pieces) return Status::OUT_OF_MEMORY;
  Piece* next = pieces.data();
  for (int64_t t = 0; t < tensors; t++) {
    const auto length = static_cast<int64_t>(lengths[t]);
    for (int64_t at = 0; at < length; at += CHUNK) *next++ = {address<const Stored>(given.inputs[t]) + at, smaller(CHUNK, length - at), 0};
  }
  parallelFor(chunks, 1, chunks == 1 ? 1 : threads, [first = pieces.data(), nonFinite = given.nonFinite](int64_t begin, int64_t end) {
    for (Piece* piece = first + begin; piece < first + end; piece++) {
      const auto value = [x = piece->x](int64_t i) { return static_cast<double>(valueOf(x[i])); };
      piece->sum = nonFinite ? sumOf(piece->length, [=](int64_t i) { return value(i) - value(i); })
                             : sumOf(piece->length, [=](int64_t i) { return value(i) * value(i); });
    }
  });
  next = pieces.data();
  for (int64_t t = 0; t < tensors; t++) {
    double sum = 0;
    for (int64_t k = ceilDivide(static_cast<int64_t>(lengths[t]), CHUNK); k > 0; k--) sum += next++->sum;
    output[t] = static_cast<T>(sum);
  }
  return Status::OK;
}

template <typename T>
Status reduce(const ReduceFields<T>& given, int threads) {
  if (given.outer * given.inner == 0) return Status::OK;
  const auto reduction = static_cast<Reduction>(given.reduction);
  const bool isMax = reduction == Reduction::MAX || reduction == Reduction::ARGMAX;
  return isMax ? reduceMax(given, reduction == Reduction::ARGMAX, threads) : reduceSum(given, reduction == Reduction::MEAN, threads);
}

}  // namespace

OPT_RUN(ReduceFields, reduce)

Status run(const SumSquaresFields& given, int threads) {
  switch (static_cast<Format>(given.format)) {
    case Format::F64: return sumSquares<double, double>(given, threads);
    case Format::BF16: return sumSquares<float, BFloat>(given, threads);
    case Format::F16: return sumSquares<float, Half>(given, threads);
    default: return sumSquares<float, float>(given, threads);
  }
}

}  // namespace opt::OPT_ISA
