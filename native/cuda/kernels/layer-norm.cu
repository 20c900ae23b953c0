// Layer normalisation of rows and its gradient.
#include "block.cuh"

template <typename T>
__device__ void layerNorm(const T* input, const T* weight, const T* bias, T* output, T* means, T* rstds, Index rows, Index length, double eps) {
  const auto count = static_cast<double>(length);
  for (Index row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* x = input + row * length;
    const double mean = sumOver(length, [=](Index i) { return x[i]; }) / count;
    const double squares = sumOver(length, [=](Index i) {
      const double difference = static_cast<double>(x[i]) - mean;
      return difference * difference;
    });
    const double rstd = 1 / sqrt(squares / count + eps);
    for (Index i = threadIdx.x; i < length; i += blockDim.x) {
      const double normal = (static_cast<double>(x[i]) - mean) * rstd;
      output[row * length + i] = static_cast<T>(normal * static_cast<double>(weight[i]) + static_cast<double>(bias[i]));
    }
    if (threadIdx.x == 0) {
      means[row] = static_cast<T>(mean);
      rstds[row] = static_cast<T>(rstd);
    }
  }
}

/** With h = (x - mean) * rstd and d = g * weight: dx = rstd * (d - mean(d) - h * mean(d h)). */
template <typename T>
__device__ void layerNormGrad(const T* input, const T* weight, const T* means, const T* rstds, const T* gradient, T* inputGradient, Index rows, Index length) {
  const auto count = static_cast<double>(length);
  for (Index row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* x = input + row * length;
    const T* g = gradient + row * length;
    const auto mean = static_cast<double>(means[row]), rstd = static_cast<double>(rstds[row]);
    const auto h = [=](Index i) { return (static_cast<double>(x[i]) - mean) * rstd; };
    const auto d = [=](Index i) { return static_cast<double>(g[i]) * static_cast<double>(weight[i]); };
    const double meanD = sumOver(length, d) / count;
    const double meanDH = sumOver(length, [=](Index i) { return d(i) * h(i); }) / count;
    for (Index i = threadIdx.x; i < length; i += blockDim.x) {
      inputGradient[row * length + i] = static_cast<T>(rstd * (d(i) - meanD - h(i) * meanDH));
    }
  }
}

/** dweight = sum(g h), dbias = sum(g) over rows. A block owns COLUMNS columns; its LANES each walk every LANES-th row. */
template <typename T>
__device__ void layerNormParameterGrad(const T* input, const T* means, const T* rstds, const T* gradient, T* weightGradient, T* biasGradient, Index rows, Index length) {
  constexpr int COLUMNS = 32, LANES = THREADS / COLUMNS;
  __shared__ double weights[LANES][COLUMNS], biases[LANES][COLUMNS];
  const int column = threadIdx.x % COLUMNS, lane = threadIdx.x / COLUMNS;
  for (Index first = static_cast<Index>(blockIdx.x) * COLUMNS; first < length; first += static_cast<Index>(gridDim.x) * COLUMNS) {
    const Index j = first + column;
    double weight = 0, bias = 0;
    if (j < length) {
      for (Index row = lane; row < rows; row += LANES) {
        const auto g = static_cast<double>(gradient[row * length + j]);
        weight += g * (static_cast<double>(input[row * length + j]) - static_cast<double>(means[row])) * static_cast<double>(rstds[row]);
        bias += g;
      }
    }
    __syncthreads();
    weights[lane][column] = weight;
    biases[lane][column] = bias;
    __syncthreads();
    if (lane == 0 && j < length) {
      for (int l = 1; l < LANES; l++) {
        weight += weights[l][column];
        bias += biases[l][column];
      }
      weightGradient[j] = static_cast<T>(weight);
      biasGradient[j] = static_cast<T>(bias);
    }
  }
}

#define DEFINE(DTYPE, T)                                                                                               \
  OPT_KERNEL(layerNorm_##DTYPE)                                                                                        \
  (const T* input, const T* weight, const T* bias, T* output, T* means, T* rstds, Index rows, Index length, double eps) { \
    layerNorm(input, weight, bias, output, means, rstds, rows, length, eps);                                           \
  }                                                                                                                    \
  OPT_KERNEL(layerNormGrad_##DTYPE)                                                                                    \
  (const T* input, const T* weight, const T* means, const T* rstds, const T* gradient, T* inputGradient, Index rows, Index length) { \
    layerNormGrad(input, weight, means, rstds, gradient, inputGradient, rows, length);                                 \
  }                                                                                                                    \
  OPT_KERNEL(layerNormParameterGrad_##DTYPE)                                                                           \
  (const T* input, const T* means, const T* rstds, const T* gradient, T* weightGradient, T* biasGradient, Index rows, Index length) { \
    layerNormParameterGrad(input, means, rstds, gradient, weightGradient, biasGradient, rows, length);                 \
  }
OPT_EACH_DTYPE(DEFINE)
