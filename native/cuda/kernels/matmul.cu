// Batched C = op(A) op(B) where cuBLAS is absent: tiles in shared memory, 4 x 4 results a thread.
#include "block.cuh"

constexpr int TILE = 64, DEPTH = 16, SIDE = 16, EACH = TILE / SIDE;
static_assert(SIDE * SIDE == THREADS);

template <typename T>
__device__ __forceinline__ T multiplyAdd(T a, T b, T c);
template <>
__device__ __forceinline__ float multiplyAdd(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
}
template <>
__device__ __forceinline__ double multiplyAdd(double a, double b, double c) {
  return __fma_rn(a, b, c);
}

template <typename T, bool TRANSPOSE_A, bool TRANSPOSE_B>
__device__ void matmul(const T* a, const T* b, T* output, Index batch, Index m, Index n, Index k, Index strideA, Index strideB) {
  __shared__ T tileA[DEPTH][TILE + 1], tileB[DEPTH][TILE + 1];
  const Index tilesM = (m + TILE - 1) / TILE, tilesN = (n + TILE - 1) / TILE;
  const int column = threadIdx.x % SIDE, row = threadIdx.x / SIDE;
  for (Index tile = blockIdx.x; tile < batch * tilesM * tilesN; tile += gridDim.x) {
    const Index firstColumn = tile % tilesN * TILE, firstRow = tile / tilesN % tilesM * TILE, sample = tile / tilesN / tilesM;
    const T* sampleA = a + sample * strideA;
    const T* sampleB = b + sample * strideB;
    T sums[EACH][EACH] = {};
    for (Index depth = 0; depth < k; depth += DEPTH) {
      __syncthreads();
      for (int e = threadIdx.x; e < TILE * DEPTH; e += THREADS) {
        // Neighbouring threads read neighbouring elements, whichever way the matrices lie.
        const int alongA = TRANSPOSE_A ? e % TILE : e / DEPTH, depthA = TRANSPOSE_A ? e / TILE : e % DEPTH;
        const int alongB = TRANSPOSE_B ? e / DEPTH : e % TILE, depthB = TRANSPOSE_B ? e % DEPTH : e / TILE;
        const Index i = firstRow + alongA, j = firstColumn + alongB, p = depth + depthA, q = depth + depthB;
        tileA[depthA][alongA] = i < m && p < k ? sampleA[TRANSPOSE_A ? p * m + i : i * k + p] : T(0);
        tileB[depthB][alongB] = j < n && q < k ? sampleB[TRANSPOSE_B ? j * k + q : q * n + j] : T(0);
      }
      __syncthreads();
      // The zeros past the end are left out: 0 times an infinity would be NaN.
      const int steps = k - depth < DEPTH ? static_cast<int>(k - depth) : DEPTH;
      for (int d = 0; d < steps; d++) {
        T left[EACH], right[EACH];
#pragma unroll
        for (int r = 0; r < EACH; r++) left[r] = tileA[d][row + r * SIDE];
#pragma unroll
        for (int c = 0; c < EACH; c++) right[c] = tileB[d][column + c * SIDE];
#pragma unroll
        for (int r = 0; r < EACH; r++) {
#pragma unroll
          for (int c = 0; c < EACH; c++) sums[r][c] = multiplyAdd(left[r], right[c], sums[r][c]);
        }
      }
    }
#pragma unroll
    for (int r = 0; r < EACH; r++) {
#pragma unroll
      for (int c = 0; c < EACH; c++) {
        const Index i = firstRow + row + r * SIDE, j = firstColumn + column + c * SIDE;
        if (i < m && j < n) output[(sample * m + i) * n + j] = sums[r][c];
      }
    }
  }
}

#define DEFINE_FORM(NAME, DTYPE, T, TRANSPOSE_A, TRANSPOSE_B)                                                          \
  OPT_KERNEL(NAME##_##DTYPE)                                                                                           \
  (const T* a, const T* b, T* output, Index batch, Index m, Index n, Index k, Index strideA, Index strideB) {          \
    matmul<T, TRANSPOSE_A, TRANSPOSE_B>(a, b, output, batch, m, n, k, strideA, strideB);                               \
  }
#define DEFINE(DTYPE, T)                                                                                               \
  DEFINE_FORM(matmulNN, DTYPE, T, false, false)                                                                        \
  DEFINE_FORM(matmulNT, DTYPE, T, false, true)                                                                         \
  DEFINE_FORM(matmulTN, DTYPE, T, true, false)                                                                         \
  DEFINE_FORM(matmulTT, DTYPE, T, true, true)
OPT_EACH_DTYPE(DEFINE)
