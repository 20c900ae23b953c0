// The sums of columns over all rows, from those of chunks.
#include "block.cuh"

/** `partials` is [chunks, outputs, length], of which this output's begin here. */
template <typename T>
__device__ void columnTotals(const double* partials, T* output, Index length, Index chunks, Index outputs) {
  for (Index i = firstElement(); i < length; i += elementStride()) {
    double sum = 0;
    for (Index chunk = 0; chunk < chunks; chunk++) sum += partials[chunk * outputs * length + i];
    output[i] = static_cast<T>(sum);
  }
}

#define DEFINE(DTYPE, T)                                                                                               \
  OPT_KERNEL(columnTotals_##DTYPE)(const double* partials, T* output, Index length, Index chunks, Index outputs) {     \
    columnTotals(partials, output, length, chunks, outputs);                                                           \
  }
OPT_EACH_DTYPE(DEFINE)
