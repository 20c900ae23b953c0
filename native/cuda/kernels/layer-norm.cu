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

/** dweight = sum(g h), dbias = sum(g) over the rows of each chunk, a thread a column: to `partials` as [chunks, 2, length]. Terms are in T. */
template <typename T>
__device__ void layerNormParameterGrad(const T* input, const T* means, const T* rstds, const T* gradient, double* partials, Index rows, Index length, Index chunks) {
  const Index chunkRows = rowsOfChunk(length);
  for (Index e = firstElement(); e < length * chunks; e += elementStride()) {
    const Index j = e % length, chunk = e / length;
    const Index end = (chunk + 1) * chunkRows < rows ? (chunk + 1) * chunkRows : rows;
    double weight = 0, bias = 0;
    for (Index row = chunk * chunkRows; row < end; row++) {
      const T g = gradient[row * length + j];
      const T h = (input[row * length + j] - means[row]) * rstds[row];
      weight += static_cast<double>(g * h);
      bias += static_cast<double>(g);
    }
    partials[2 * chunk * length + j] = weight;
    partials[(2 * chunk + 1) * length + j] = bias;
  }
}

template <typename T>
__device__ void layerNormPartials(const double* partials, T* weightGradient, T* biasGradient, Index length, Index chunks) {
  for (Index e = firstElement(); e < 2 * length; e += elementStride()) {
    double sum = 0;
    for (Index chunk = 0; chunk < chunks; chunk++) sum += partials[2 * chunk * length + e];
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
  (const T* input, const T* means, const T* rstds, const T* gradient, double* partials, Index rows, Index length, Index chunks) { \
    layerNormParameterGrad(input, means, rstds, gradient, partials, rows, length, chunks);                             \
  }                                                                                                                    \
  OPT_KERNEL(layerNormPartials_##DTYPE)                                                                                \
  (const double* partials, T* weightGradient, T* biasGradient, Index length, Index chunks) {                           \
    layerNormPartials(partials, weightGradient, biasGradient, length, chunks);                                         \
  }
OPT_EACH_DTYPE(DEFINE)
