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

/**
 * dweight = sum(g h), dbias = sum(g) over rows, which are cut into `slices` stretches. A block owns COLUMNS columns of a stretch, its LANES
 * each walk every LANES-th row; sums of stretches go to `partials` as [slices, 2, length], or to the results where there is one.
 */
template <typename T>
__device__ void layerNormParameterGrad(const T* input, const T* means, const T* rstds, const T* gradient, T* weightGradient, T* biasGradient, double* partials, Index rows, Index length, Index slices) {
  constexpr int COLUMNS = 32, LANES = THREADS / COLUMNS;
  __shared__ double weights[LANES][COLUMNS], biases[LANES][COLUMNS];
  const int column = threadIdx.x % COLUMNS, lane = threadIdx.x / COLUMNS;
  const Index across = (length + COLUMNS - 1) / COLUMNS, sliceRows = (rows + slices - 1) / slices;
  for (Index stretch = blockIdx.x; stretch < across * slices; stretch += gridDim.x) {
    const Index j = stretch % across * COLUMNS + column, slice = stretch / across;
    const Index end = (slice + 1) * sliceRows < rows ? (slice + 1) * sliceRows : rows;
    double weight = 0, bias = 0;
    if (j < length) {
      for (Index row = slice * sliceRows + lane; row < end; row += LANES) {
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
      if (slices == 1) {
        weightGradient[j] = static_cast<T>(weight);
        biasGradient[j] = static_cast<T>(bias);
      } else {
        partials[2 * slice * length + j] = weight;
        partials[(2 * slice + 1) * length + j] = bias;
      }
    }
  }
}

template <typename T>
__device__ void layerNormPartials(const double* partials, T* weightGradient, T* biasGradient, Index length, Index slices) {
  for (Index e = firstElement(); e < 2 * length; e += elementStride()) {
    double sum = 0;
    for (Index slice = 0; slice < slices; slice++) sum += partials[2 * slice * length + e];
    if (e < length) weightGradient[e] = static_cast<T>(sum);
    else biasGradient[e - length] = static_cast<T>(sum);
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
  (const T* input, const T* means, const T* rstds, const T* gradient, T* weightGradient, T* biasGradient, double* partials, Index rows, Index length, Index slices) { \
    layerNormParameterGrad(input, means, rstds, gradient, weightGradient, biasGradient, partials, rows, length, slices); \
  }                                                                                                                    \
  OPT_KERNEL(layerNormPartials_##DTYPE)                                                                                \
  (const double* partials, T* weightGradient, T* biasGradient, Index length, Index slices) {                           \
    layerNormPartials(partials, weightGradient, biasGradient, length, slices);                                         \
  }
OPT_EACH_DTYPE(DEFINE)
