// (log-)softmax of rows and its gradient: one block a row.
#include "softmax.cuh"

template <typename T, bool LOG>
__device__ void softmax(const T* input, T* output, Index rows, Index length) {
  for (Index row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* x = input + row * length;
    T* y = output + row * length;
    const LogSumExp<T> norm = logSumExp(x, length);
    for (Index i = threadIdx.x; i < length; i += blockDim.x) {
      const T shifted = x[i] - norm.max - norm.logSum;
      y[i] = LOG ? shifted : opt_weight(shifted);
    }
  }
}

/** softmax: y (g - sum(g y)); log-softmax: g - exp(y) sum(g). */
template <typename T, bool LOG>
__device__ void softmaxGrad(const T* forward, const T* gradient, T* output, Index rows, Index length) {
  for (Index row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* y = forward + row * length;
    const T* g = gradient + row * length;
    const double sum = sumOver(length, [=](Index i) { return LOG ? static_cast<double>(g[i]) : static_cast<double>(g[i]) * static_cast<double>(y[i]); });
    for (Index i = threadIdx.x; i < length; i += blockDim.x) {
      const auto gi = static_cast<double>(g[i]);
      output[row * length + i] = static_cast<T>(LOG ? gi - static_cast<double>(opt_weight(y[i])) * sum : static_cast<double>(y[i]) * (gi - sum));
    }
  }
}

#define DEFINE(DTYPE, T)                                                                                               \
  OPT_KERNEL(softmax_##DTYPE)(const T* input, T* output, Index rows, Index length) {                                   \
    softmax<T, false>(input, output, rows, length);                                                                    \
  }                                                                                                                    \
  OPT_KERNEL(logSoftmax_##DTYPE)(const T* input, T* output, Index rows, Index length) {                                \
    softmax<T, true>(input, output, rows, length);                                                                     \
  }                                                                                                                    \
  OPT_KERNEL(softmaxGrad_##DTYPE)(const T* forward, const T* gradient, T* output, Index rows, Index length) {          \
    softmaxGrad<T, false>(forward, gradient, output, rows, length);                                                    \
  }                                                                                                                    \
  OPT_KERNEL(logSoftmaxGrad_##DTYPE)(const T* forward, const T* gradient, T* output, Index rows, Index length) {       \
    softmaxGrad<T, true>(forward, gradient, output, rows, length);                                                     \
  }
OPT_EACH_DTYPE(DEFINE)
