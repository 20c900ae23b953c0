// What the hand-written kernels share: names by dtype, grid-stride loops, sums over a block.
#pragma once
#include "elements.cuh"

/** Expands a definition for each dtype that kernels compute in. */
#define OPT_EACH_DTYPE(DEFINE) DEFINE(f32, float) DEFINE(f64, double)

#define OPT_KERNEL(NAME) extern "C" __global__ void __launch_bounds__(THREADS) NAME

__device__ __forceinline__ Index firstElement() { return static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ __forceinline__ Index elementStride() { return static_cast<Index>(gridDim.x) * blockDim.x; }

/** Combines one value of every thread, in a fixed order; all threads get the result. Blocks are powers of two: short rows take fewer threads. */
template <typename T, typename Combine>
__device__ T combineBlock(T value, Combine combine) {
  __shared__ T values[THREADS];
  __syncthreads();  // an earlier result may still be read
  values[threadIdx.x] = value;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) values[threadIdx.x] = combine(values[threadIdx.x], values[threadIdx.x + half]);
    __syncthreads();
  }
  return values[0];
}

__device__ __forceinline__ double sumBlock(double value) {
  return combineBlock(value, [](double a, double b) { return a + b; });
}

/** Sum of term(i) for i < length over the threads of a block, in float64. */
template <typename Term>
__device__ __forceinline__ double sumOver(Index length, Term term) {
  double sum = 0;
  for (Index i = threadIdx.x; i < length; i += blockDim.x) sum += static_cast<double>(term(i));
  return sumBlock(sum);
}
