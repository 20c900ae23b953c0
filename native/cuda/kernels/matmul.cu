// Batched C = op(A) op(B) in the order that core's js/matmul.ts defines: tiles in shared memory, 4 x 4 results a thread. The next tiles
// travel to registers while a thread multiplies, then go to the other half of the shared memory.
#include "block.cuh"
#include "fields.cuh"

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
__device__ void matmul(const MatmulFields<T>& given) {
  const Index m = given.m, n = given.n, k = given.k;
  constexpr int LOADS = TILE * DEPTH / THREADS;
  constexpr Index LONGEST_CHAIN = 2048 / sizeof(T);
  const Index pieces = (k + LONGEST_CHAIN - 1) / LONGEST_CHAIN;
  __shared__ T tileA[2][DEPTH][TILE + 1], tileB[2][DEPTH][TILE + 1];
  const Index tilesM = (m + TILE - 1) / TILE, tilesN = (n + TILE - 1) / TILE;
  const int column = threadIdx.x % SIDE, row = threadIdx.x / SIDE;
  for (Index tile = blockIdx.x; tile < given.batch * tilesM * tilesN; tile += gridDim.x) {
    const Index firstColumn = tile % tilesN * TILE, firstRow = tile / tilesN % tilesM * TILE, sample = tile / tilesN / tilesM;
    const T* sampleA = given.a + sample * given.strideA;
    const T* sampleB = given.b + sample * given.strideB;
    T totals[EACH][EACH] = {}, nextA[LOADS], nextB[LOADS];
    // Neighbouring threads read neighbouring elements, whichever way the matrices lie.
    const auto alongA = [](int e) { return TRANSPOSE_A ? e % TILE : e / DEPTH; };
    const auto depthA = [](int e) { return TRANSPOSE_A ? e / TILE : e % DEPTH; };
    const auto alongB = [](int e) { return TRANSPOSE_B ? e / DEPTH : e % TILE; };
    const auto depthB = [](int e) { return TRANSPOSE_B ? e % DEPTH : e / TILE; };
    const auto fetch = [&](Index depth, Index end) {
#pragma unroll
      for (int l = 0; l < LOADS; l++) {
        const int e = threadIdx.x + l * THREADS;
        const Index i = firstRow + alongA(e), j = firstColumn + alongB(e), p = depth + depthA(e), q = depth + depthB(e);
        nextA[l] = i < m && p < end ? sampleA[TRANSPOSE_A ? p * m + i : i * k + p] : T(0);
        nextB[l] = j < n && q < end ? sampleB[TRANSPOSE_B ? j * k + q : q * n + j] : T(0);
      }
    };
    const auto keep = [&](int half) {
#pragma unroll
      for (int l = 0; l < LOADS; l++) {
        const int e = threadIdx.x + l * THREADS;
        tileA[half][depthA(e)][alongA(e)] = nextA[l];
        tileB[half][depthB(e)][alongB(e)] = nextB[l];
      }
    };
    for (Index piece = 0; piece < pieces; piece++) {
      const Index end = k * (piece + 1) / pieces;
      Index depth = k * piece / pieces;
      T sums[EACH][EACH] = {};
      fetch(depth, end);
      keep(0);
      __syncthreads();
      for (int half = 0; depth < end; depth += DEPTH) {
        const bool more = depth + DEPTH < end;
        if (more) fetch(depth + DEPTH, end);
        // The zeros past the end are left out: 0 times an infinity would be NaN.
        const int steps = more ? DEPTH : static_cast<int>(end - depth);
        for (int d = 0; d < steps; d++) {
          T left[EACH], right[EACH];
#pragma unroll
          for (int r = 0; r < EACH; r++) left[r] = tileA[half][d][row + r * SIDE];
#pragma unroll
          for (int c = 0; c < EACH; c++) right[c] = tileB[half][d][column + c * SIDE];
#pragma unroll
          for (int r = 0; r < EACH; r++) {
#pragma unroll
            for (int c = 0; c < EACH; c++) sums[r][c] = multiplyAdd(left[r], right[c], sums[r][c]);
          }
        }
        half = 1 - half;
        if (more) keep(half);
        __syncthreads();
      }
#pragma unroll
      for (int r = 0; r < EACH; r++) {
#pragma unroll
        for (int c = 0; c < EACH; c++) totals[r][c] = piece == 0 ? sums[r][c] : totals[r][c] + sums[r][c];
      }
    }
#pragma unroll
    for (int r = 0; r < EACH; r++) {
#pragma unroll
      for (int c = 0; c < EACH; c++) {
        const Index i = firstRow + row + r * SIDE, j = firstColumn + column + c * SIDE;
        if (i < m && j < n) given.output[(sample * m + i) * n + j] = totals[r][c];
      }
    }
  }
}

#define DEFINE_FORM(NAME, DTYPE, T, TRANSPOSE_A, TRANSPOSE_B)                                                          \
  OPT_KERNEL(NAME##_##DTYPE)(MatmulFields<T> given) { matmul<T, TRANSPOSE_A, TRANSPOSE_B>(given); }
#define DEFINE(DTYPE, T)                                                                                               \
  DEFINE_FORM(matmulNN, DTYPE, T, false, false)                                                                        \
  DEFINE_FORM(matmulNT, DTYPE, T, false, true)                                                                         \
  DEFINE_FORM(matmulTN, DTYPE, T, true, false)                                                                         \
  DEFINE_FORM(matmulTT, DTYPE, T, true, true)
OPT_EACH_DTYPE(DEFINE)
