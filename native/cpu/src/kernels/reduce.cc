// Reductions over the middle axis of [outer, length, inner], accumulated in double, and sums of squares of a list of tensors.
#include "kernels/command.h"
#include "kernels/parallel.h"
#include "kernels/rows.h"
#include "kernels/stored.h"

namespace opt::OPT_ISA {
namespace {

enum Reduction { SUM, MEAN, MAX, ARGMAX };

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
Status reduceSum(Command& command, bool mean, int64_t outer, int64_t length, int64_t inner, const T* input, T* output) {
  const int64_t tiles = ceilDivide(inner, TILE);
  const int64_t rowsPerChunk = rowsOfChunk(inner);
  const int64_t chunks = larger<int64_t>(1, ceilDivide(length, rowsPerChunk));
  // partial[(o * chunks + chunk) * inner + i]
  Scratch<double> partial(outer * chunks * inner);
  if (!partial) return Status::OUT_OF_MEMORY;
  double* partials = partial.data();
  const int64_t items = outer * chunks * tiles;
  const int64_t cost = smaller(inner, TILE) * smaller(length, rowsPerChunk);
  parallelFor(items, grainOf(cost), command.threads, [=](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; item++) {
      const int64_t tile = item % tiles, rest = item / tiles, chunk = rest % chunks, o = rest / chunks;
      const int64_t first = tile * TILE;
      sumTile(input + o * length * inner + first, inner, chunk * rowsPerChunk, smaller(length, (chunk + 1) * rowsPerChunk),
              smaller(TILE, inner - first), partials + rest * inner + first);
    }
  });
  const auto divisor = mean ? static_cast<double>(length) : 1.0;
  parallelFor(outer, grainOf(chunks * inner), command.threads, [=](int64_t begin, int64_t end) {
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
Status reduceMax(Command& command, bool position, int64_t outer, int64_t length, int64_t inner, const T* input, void* output) {
  parallelFor(outer * inner, grainOf(length), command.threads, [=](int64_t begin, int64_t end) {
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

template <typename T>
Status reduce(Command& command) {
  const auto reduction = static_cast<Reduction>(command.integer());
  const int64_t outer = command.integer(), length = command.integer(), inner = command.integer();
  const T* input = command.pointer<const T>();
  void* output = command.pointer<void>();
  if (outer * inner == 0) return Status::OK;
  if (reduction == SUM || reduction == MEAN) {
    return reduceSum(command, reduction == MEAN, outer, length, inner, input, static_cast<T*>(output));
  }
  return reduceMax(command, reduction == ARGMAX, outer, length, inner, input, output);
}

/** Of elements that are stored so, in T. With `nonFinite` the sum of their differences from themselves: 0, or NaN. */
template <typename T, typename Stored>
Status sumSquares(Command& command) {
  const bool nonFinite = command.flag();
  const int64_t tensors = command.integer();
  const double* lengths = command.numbers(tensors);
  const double* addresses = command.numbers(tensors);
  T* output = command.pointer<T>();
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
    for (int64_t at = 0; at < length; at += CHUNK) *next++ = {address<const Stored>(addresses[t]) + at, smaller(CHUNK, length - at), 0};
  }
  parallelFor(chunks, 1, chunks == 1 ? 1 : command.threads, [first = pieces.data(), nonFinite](int64_t begin, int64_t end) {
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

}  // namespace

Status runReduce(Command& command) { return command.flag() ? reduce<double>(command) : reduce<float>(command); }
Status runSumSquares(Command& command) {
  switch (static_cast<DType>(command.integer())) {
    case DType::F64: return sumSquares<double, double>(command);
    case DType::BF16: return sumSquares<float, BFloat>(command);
    case DType::F16: return sumSquares<float, Half>(command);
    default: return sumSquares<float, float>(command);
  }
}

}  // namespace opt::OPT_ISA
