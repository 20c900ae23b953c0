// What the hand-written kernels share: names by dtype, grid-stride loops, sums over a block.
#pragma once
#include "elements.cuh"

/** Expands a definition for each dtype that kernels compute in. */
#define OPT_EACH_DTYPE(DEFINE) DEFINE(f32, float) DEFINE(f64, double)

#define OPT_KERNEL(NAME) extern "C" __global__ void __launch_bounds__(THREADS, 1) NAME

__device__ __forceinline__ Index firstElement() { return static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ __forceinline__ Index elementStride() { return static_cast<Index>(gridDim.x) * blockDim.x; }

constexpr unsigned WARP = 32, ALL_LANES = 0xffffffffu;

/** The value of the lane that many further on in the warp. Structs that are combined have one of their own. */
__device__ __forceinline__ double laneAhead(double value, unsigned by) { return __shfl_down_sync(ALL_LANES, value, by); }

/** Combines one value of every thread, in a fixed order: within warps, then over them; all threads get the result. Blocks are whole warps. */
template <typename T, typename Combine>
__device__ T combineBlock(T value, Combine combine) {
  __shared__ T values[THREADS / WARP];
#pragma unroll
  for (unsigned by = WARP / 2; by > 0; by /= 2) value = combine(value, laneAhead(value, by));
  __syncthreads();  // an earlier result may still be read
  if (threadIdx.x % WARP == 0) values[threadIdx.x / WARP] = value;
  __syncthreads();
  T all = values[0];
  for (unsigned warp = 1; warp < blockDim.x / WARP; warp++) all = combine(all, values[warp]);
  return all;
}

// The order of every sum: element i of a chunk goes to lane i mod LANES, lanes are added as a tree, chunks in order.
constexpr Index CHUNK = 32768;
constexpr unsigned LANES = 16;

/** The sum of term(i) for i from `begin` to `end`, a chunk, by a group of LANES threads: in the first of them. */
template <typename Term>
__device__ __forceinline__ double sumOfChunk(Index begin, Index end, Term term) {
  double sum = 0;
  for (Index i = begin + threadIdx.x % LANES; i < end; i += LANES) sum += static_cast<double>(term(i));
#pragma unroll
  for (unsigned by = LANES / 2; by > 0; by /= 2) sum += laneAhead(sum, by);
  return sum;
}

/** Sum of term(i) for i < length over the threads of a block, in float64: in all threads. */
template <typename Term>
__device__ __forceinline__ double sumOver(Index length, Term term) {
  __shared__ double sums[THREADS / LANES];
  const unsigned group = threadIdx.x / LANES, groups = blockDim.x / LANES;
  double total = 0;
  for (Index first = 0; first < length; first += groups * CHUNK) {
    const Index begin = first + group * CHUNK, end = begin + CHUNK < length ? begin + CHUNK : length;
    const double sum = sumOfChunk(begin, end, term);
    __syncthreads();  // earlier ones may still be read
    if (threadIdx.x % LANES == 0) sums[group] = sum;
    __syncthreads();
    for (unsigned g = 0; g < groups; g++) total += sums[g];
  }
  return total;
}

/** The largest value(i) for i < length over the threads of a block: a NaN if there is one, -infinity of nothing, a zero is +0. */
template <typename T, typename Value>
__device__ __forceinline__ T largestOver(Index length, Value value) {
  const auto larger = [](T a, T b) { return a < b || b != b ? b : a; };
  T largest = static_cast<T>(__int_as_float(static_cast<int>(0xff800000)));
  for (Index i = threadIdx.x; i < length; i += blockDim.x) largest = larger(largest, value(i));
  return combineBlock(largest, larger) + T(0);
}

/** The rows of a chunk where columns are added up, which are so many. */
__device__ __forceinline__ Index rowsOfChunk(Index columns) { return CHUNK / (columns < 64 ? columns : 64); }
