// Reductions over the middle axis of [outer, length, inner] and sums of squares of lists, in two passes of fixed order.
#include "stored.cuh"

/** What is known of some elements of a line: their sum, or the largest and where it stands (-1: no element yet). */
struct Partial {
  double value;
  Index at;
};

__device__ __forceinline__ Partial laneAhead(Partial partial, unsigned by) {
  return {laneAhead(partial.value, by), __shfl_down_sync(ALL_LANES, partial.at, by)};
}

struct Sum {
  static __device__ __forceinline__ Partial none() { return {0, -1}; }
  static __device__ __forceinline__ Partial combine(Partial a, Partial b) { return {a.value + b.value, -1}; }
};

/** The first NaN, else the first of the largest. */
struct Max {
  static __device__ __forceinline__ Partial none() { return {0, -1}; }
  static __device__ __forceinline__ Partial combine(Partial a, Partial b) {
    if (b.at < 0) return a;
    if (a.at < 0) return b;
    const bool nanA = a.value != a.value, nanB = b.value != b.value;
    if (nanA != nanB) return nanA ? a : b;
    if (nanA || a.value == b.value) return a.at < b.at ? a : b;
    return a.value < b.value ? b : a;
  }
};

enum class Result { VALUE, MEAN, PLACE };

template <typename T, Result RESULT>
__device__ __forceinline__ void store(void* output, Index line, Partial partial, Index length) {
  if (RESULT == Result::PLACE) static_cast<int*>(output)[line] = static_cast<int>(partial.at);
  else static_cast<T*>(output)[line] = static_cast<T>(RESULT == Result::MEAN ? partial.value / static_cast<double>(length) : partial.value);
}

/**
 * Lines are cut into `slices` stretches; a partial result each goes to `partials`, or the whole result to `output` where there is one slice.
 * acrossThreads: a block a stretch; else a thread a stretch, neighbours in neighbouring lines.
 */
template <typename T, typename Op, Result RESULT>
__device__ void reduce(const T* input, void* output, Partial* partials, Index outer, Index length, Index inner, Index slices, Index acrossThreads) {
  const Index sliceLength = (length + slices - 1) / slices, stretches = outer * slices * inner;
  const auto element = [=](Index line, Index l) {
    const Index o = line / inner, i = line % inner;
    return Partial{static_cast<double>(input[(o * length + l) * inner + i]), l};
  };
  const auto finish = [=](Index line, Index slice, Partial partial) {
    if (slices == 1) store<T, RESULT>(output, line, partial, length);
    else partials[line * slices + slice] = partial;
  };
  const Index first = acrossThreads ? blockIdx.x : firstElement(), stride = acrossThreads ? gridDim.x : elementStride();
  for (Index s = first; s < stretches; s += stride) {
    // Stretch numbers run over lines fastest, so that neighbouring threads read neighbouring elements.
    const Index line = s % (outer * inner), slice = s / (outer * inner);
    const Index end = (slice + 1) * sliceLength < length ? (slice + 1) * sliceLength : length;
    Partial partial = Op::none();
    if (acrossThreads) {
      for (Index l = slice * sliceLength + threadIdx.x; l < end; l += blockDim.x) partial = Op::combine(partial, element(line, l));
      partial = combineBlock(partial, Op::combine);
      if (threadIdx.x == 0) finish(line, slice, partial);
    } else {
      for (Index l = slice * sliceLength; l < end; l++) partial = Op::combine(partial, element(line, l));
      finish(line, slice, partial);
    }
  }
}

template <typename T, typename Op, Result RESULT>
__device__ void reducePartials(const Partial* partials, void* output, Index lines, Index slices, Index length) {
  for (Index line = blockIdx.x; line < lines; line += gridDim.x) {
    Partial partial = Op::none();
    for (Index s = threadIdx.x; s < slices; s += blockDim.x) partial = Op::combine(partial, partials[line * slices + s]);
    partial = combineBlock(partial, Op::combine);
    if (threadIdx.x == 0) store<T, RESULT>(output, line, partial, length);
  }
}

#define DEFINE_OP(NAME, DTYPE, T, OP, RESULT)                                                                          \
  OPT_KERNEL(NAME##_##DTYPE)                                                                                           \
  (const T* input, void* output, Partial* partials, Index outer, Index length, Index inner, Index slices, Index acrossThreads) { \
    reduce<T, OP, RESULT>(input, output, partials, outer, length, inner, slices, acrossThreads);                       \
  }                                                                                                                    \
  OPT_KERNEL(NAME##Partials_##DTYPE)(const Partial* partials, void* output, Index lines, Index slices, Index length) { \
    reducePartials<T, OP, RESULT>(partials, output, lines, slices, length);                                            \
  }

/** A sum of squares per chunk of the table; their sums per tensor: tensor t has chunks starts[t] to starts[t + 1]. */
#define DEFINE(DTYPE, T)                                                                                               \
  DEFINE_OP(sum, DTYPE, T, Sum, Result::VALUE)                                                                         \
  DEFINE_OP(mean, DTYPE, T, Sum, Result::MEAN)                                                                         \
  DEFINE_OP(max, DTYPE, T, Max, Result::VALUE)                                                                         \
  DEFINE_OP(argmax, DTYPE, T, Max, Result::PLACE)                                                                      \
  OPT_KERNEL(sumSquaresPartials_##DTYPE)(const double* partials, const Index* starts, Index tensors, T* output) {      \
    for (Index t = blockIdx.x; t < tensors; t += gridDim.x) {                                                          \
      const double* own = partials + starts[t];                                                                        \
      const double sum = sumOver(starts[t + 1] - starts[t], [=](Index i) { return own[i]; });                          \
      if (threadIdx.x == 0) output[t] = static_cast<T>(sum);                                                           \
    }                                                                                                                  \
  }
OPT_EACH_DTYPE(DEFINE)

/** The sum of term(x) over each chunk of elements that are stored so. */
template <typename Stored, typename Term>
__device__ __forceinline__ void sumChunks(const Chunk<1>* chunks, Index count, double* partials, Term term) {
  for (Index c = blockIdx.x; c < count; c += gridDim.x) {
    const Stored* x = global<Stored>(chunks[c].buffers[0]);
    const double sum = sumOver(chunks[c].length, [=](Index i) { return term(numberOf(x[i])); });
    if (threadIdx.x == 0) partials[c] = sum;
  }
}

#define DEFINE_SUMS(STORED, T)                                                                                         \
  OPT_KERNEL(sumSquares_##STORED)(const Chunk<1>* chunks, Index count, double* partials) {                             \
    sumChunks<T>(chunks, count, partials, [](double x) { return x * x; });                                             \
  }                                                                                                                    \
  OPT_KERNEL(nonFinite_##STORED)(const Chunk<1>* chunks, Index count, double* partials) {                              \
    sumChunks<T>(chunks, count, partials, [](double x) { return x - x; });                                             \
  }
DEFINE_SUMS(f32, float)
DEFINE_SUMS(f64, double)
DEFINE_SUMS(f16, f16)
DEFINE_SUMS(bf16, bf16)
