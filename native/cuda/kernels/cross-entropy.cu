// Cross-entropy of rows against labels and its gradient: one block a row.
#include "softmax.cuh"

template <typename T>
__device__ __forceinline__ T notANumber() {
  return static_cast<T>(__int_as_float(0x7fc00000));
}

template <typename T>
__device__ void crossEntropy(const T* logits, const int* labels, T* output, Index rows, Index classes, Index ignoreIndex) {
  for (Index row = blockIdx.x; row < rows; row += gridDim.x) {
    const Index label = labels[row];
    const T* x = logits + row * classes;
    T loss = 0;
    if (label != ignoreIndex) {
      if (label < 0 || label >= classes) loss = notANumber<T>();
      else {
        const LogSumExp<T> norm = logSumExp(x, classes);
        loss = norm.max + norm.logSum - x[label];
      }
    }
    if (threadIdx.x == 0) output[row] = loss;
  }
}

template <typename T>
__device__ void crossEntropyGrad(const T* logits, const int* labels, const T* gradient, T* output, Index rows, Index classes, Index ignoreIndex) {
  for (Index row = blockIdx.x; row < rows; row += gridDim.x) {
    const Index label = labels[row];
    const T* x = logits + row * classes;
    T* y = output + row * classes;
    if (label == ignoreIndex || label < 0 || label >= classes) {
      const T fill = label == ignoreIndex ? T(0) : notANumber<T>();
      for (Index i = threadIdx.x; i < classes; i += blockDim.x) y[i] = fill;
      continue;
    }
    const LogSumExp<T> norm = logSumExp(x, classes);
    for (Index i = threadIdx.x; i < classes; i += blockDim.x) {
      y[i] = (opt_weight(x[i] - norm.max - norm.logSum) - (i == label ? T(1) : T(0))) * gradient[row];
    }
  }
}

#define DEFINE(DTYPE, T)                                                                                               \
  OPT_KERNEL(crossEntropy_##DTYPE)                                                                                     \
  (const T* logits, const int* labels, T* output, Index rows, Index classes, Index ignoreIndex) {                      \
    crossEntropy(logits, labels, output, rows, classes, ignoreIndex);                                                  \
  }                                                                                                                    \
  OPT_KERNEL(crossEntropyGrad_##DTYPE)                                                                                 \
  (const T* logits, const int* labels, const T* gradient, T* output, Index rows, Index classes, Index ignoreIndex) {   \
    crossEntropyGrad(logits, labels, gradient, output, rows, classes, ignoreIndex);                                    \
  }
OPT_EACH_DTYPE(DEFINE)
