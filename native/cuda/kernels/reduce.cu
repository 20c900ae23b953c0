// Reductions over the middle axis of [outer, length, inner] and sums of squares of lists, in two passes of fixed order.
#include "fields.cuh"
#include "stored.cuh"

/** The sum of each chunk of each line, to `partials` as [chunks, lines]: by LANES threads where inner = 1, else by one. */
template <typename T>
__device__ void sum(const ReduceFields<T>& given, double* partials, Index chunks) {
  const Index length = given.length, inner = given.inner;
  const Index lines = given.outer * inner, items = lines * chunks, rows = rowsOfChunk(inner);
  const unsigned together = inner == 1 ? LANES : 1;
  // Groups of a block go on together: lanes of a warp wait for each other.
  for (Index first = blockIdx.x * (blockDim.x / together); first < items; first += gridDim.x * (blockDim.x / together)) {
    const Index item = first + threadIdx.x / together, line = item % lines, begin = item / lines * rows;
    const Index end = item >= items ? begin : begin + rows < length ? begin + rows : length;
    const T* x = given.input + line / inner * length * inner + line % inner;
    double sum = 0;
    if (inner == 1) sum = sumOfChunk(begin, end, [=](Index i) { return x[i]; });
    else for (Index row = begin; row < end; row++) sum += static_cast<double>(x[row * inner]);
    if (item < items && (inner > 1 || threadIdx.x % LANES == 0)) partials[item] = sum;
  }
}

template <typename T>
__device__ void sumPartials(const ReduceFields<T>& given, const double* partials, Index chunks, Index divisor) {
  const Index lines = given.outer * given.inner;
  for (Index line = firstElement(); line < lines; line += elementStride()) {
    double sum = 0;
    for (Index chunk = 0; chunk < chunks; chunk++) sum += partials[chunk * lines + line];
    static_cast<T*>(given.output)[line] = static_cast<T>(sum / static_cast<double>(divisor));
  }
}

/** The largest of some elements of a line and where it stands (-1: no element yet). */
struct Partial {
  double value;
  Index at;
};

__device__ __forceinline__ Partial laneAhead(Partial partial, unsigned by) {
  return {laneAhead(partial.value, by), __shfl_down_sync(ALL_LANES, partial.at, by)};
}

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

/** The place, or the value: a largest of -0 is stored as 0, because devices meet zeros in any order. */
template <typename T, bool PLACE>
__device__ __forceinline__ void store(void* output, Index line, Partial partial) {
  if (PLACE) static_cast<int*>(output)[line] = static_cast<int>(partial.at);
  else static_cast<T*>(output)[line] = static_cast<T>(partial.value + 0.0);
}

/**
 * Lines are cut into `slices` stretches; a partial result each goes to `partials`, or the whole result to `output` where there is one slice.
 * acrossThreads: a block a stretch; else a thread a stretch, neighbours in neighbouring lines.
 */
template <typename T, bool PLACE>
__device__ void largest(const ReduceFields<T>& given, Partial* partials, Index slices, Index acrossThreads) {
  const Index outer = given.outer, length = given.length, inner = given.inner;
  const T* input = given.input;
  void* output = given.output;
  const Index sliceLength = (length + slices - 1) / slices, stretches = outer * slices * inner;
  const auto element = [=](Index line, Index l) {
    const Index o = line / inner, i = line % inner;
    return Partial{static_cast<double>(input[(o * length + l) * inner + i]), l};
  };
  const auto finish = [=](Index line, Index slice, Partial partial) {
    if (slices == 1) store<T, PLACE>(output, line, partial);
    else partials[line * slices + slice] = partial;
  };
  const Index first = acrossThreads ? blockIdx.x : firstElement(), stride = acrossThreads ? gridDim.x : elementStride();
  for (Index s = first; s < stretches; s += stride) {
    // Stretch numbers run over lines fastest, so that neighbouring threads read neighbouring elements.
    const Index line = s % (outer * inner), slice = s / (outer * inner);
    const Index end = (slice + 1) * sliceLength < length ? (slice + 1) * sliceLength : length;
    Partial partial = Max::none();
    if (acrossThreads) {
      for (Index l = slice * sliceLength + threadIdx.x; l < end; l += blockDim.x) partial = Max::combine(partial, element(line, l));
      partial = combineBlock(partial, Max::combine);
      if (threadIdx.x == 0) finish(line, slice, partial);
    } else {
      for (Index l = slice * sliceLength; l < end; l++) partial = Max::combine(partial, element(line, l));
      finish(line, slice, partial);
    }
  }
}

template <typename T, bool PLACE>
__device__ void largestPartials(const ReduceFields<T>& given, const Partial* partials, Index slices) {
  const Index lines = given.outer * given.inner;
  for (Index line = blockIdx.x; line < lines; line += gridDim.x) {
    Partial partial = Max::none();
    for (Index s = threadIdx.x; s < slices; s += blockDim.x) partial = Max::combine(partial, partials[line * slices + s]);
    partial = combineBlock(partial, Max::combine);
    if (threadIdx.x == 0) store<T, PLACE>(given.output, line, partial);
  }
}

#define DEFINE_LARGEST(NAME, DTYPE, T, PLACE)                                                                          \
  OPT_KERNEL(NAME##_##DTYPE)(ReduceFields<T> given, Partial* partials, Index slices, Index acrossThreads) {            \
    largest<T, PLACE>(given, partials, slices, acrossThreads);                                                         \
  }                                                                                                                    \
  OPT_KERNEL(NAME##Partials_##DTYPE)(ReduceFields<T> given, const Partial* partials, Index slices) {                   \
    largestPartials<T, PLACE>(given, partials, slices);                                                                \
  }

/** Sums of squares: of a tensor's chunks starts[t] to starts[t + 1], in order. */
#define DEFINE(DTYPE, T)                                                                                               \
  DEFINE_LARGEST(max, DTYPE, T, false)                                                                                 \
  DEFINE_LARGEST(argmax, DTYPE, T, true)                                                                               \
  OPT_KERNEL(sum_##DTYPE)(ReduceFields<T> given, double* partials, Index chunks) { sum(given, partials, chunks); }     \
  OPT_KERNEL(sumPartials_##DTYPE)(ReduceFields<T> given, const double* partials, Index chunks, Index divisor) {        \
    sumPartials(given, partials, chunks, divisor);                                                                     \
  }                                                                                                                    \
  OPT_KERNEL(sumSquaresPartials_##DTYPE)(const double* partials, const Index* starts, Index tensors, T* output) {      \
    for (Index t = firstElement(); t < tensors; t += elementStride()) {                                                \
      double sum = 0;                                                                                                  \
      for (Index chunk = starts[t]; chunk < starts[t + 1]; chunk++) sum += partials[chunk];                            \
      output[t] = static_cast<T>(sum);                                                                                 \
    }                                                                                                                  \
  }
OPT_EACH_DTYPE(DEFINE)

/** The sum of term(x) over each chunk of elements that are stored so, by LANES threads each. */
template <typename Stored, typename Term>
__device__ __forceinline__ void sumChunks(const Chunk<1>* chunks, Index count, double* partials, Term term) {
  const Index groups = blockDim.x / LANES;
  for (Index first = blockIdx.x * groups; first < count; first += gridDim.x * groups) {
    const Index c = first + threadIdx.x / LANES;
    const Stored* x = c < count ? global<Stored>(chunks[c].buffers[0]) : nullptr;
    const double sum = sumOfChunk(0, c < count ? chunks[c].length : 0, [=](Index i) { return term(numberOf(x[i])); });
    if (c < count && threadIdx.x % LANES == 0) partials[c] = sum;
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
