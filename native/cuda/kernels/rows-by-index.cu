// Gathering rows by index, and adding rows up by index in their order.
#include "block.cuh"

/** Integer: 32 bits where the size allows, because 64-bit division is slow. */
template <typename Integer, typename T>
__device__ void gather(const T* table, const int* indices, T* output, Index rows, Index width, Index count) {
  for (Index e = firstElement(); e < count * width; e += elementStride()) {
    const auto at = static_cast<Integer>(e), across = static_cast<Integer>(width);
    const Index row = indices[at / across];
    output[e] = row < 0 || row >= rows ? static_cast<T>(__int_as_float(0x7fc00000)) : table[row * width + at % across];
  }
}

/** A thread owns one column of the rows that leave remainder `part` by `parts`, and walks all indices: no two threads add to one element. */
template <typename T>
__device__ void scatterAdd(const T* source, const int* indices, T* output, Index rows, Index width, Index count, Index parts) {
  const auto step = static_cast<unsigned>(parts);
  for (Index e = firstElement(); e < width * parts; e += elementStride()) {
    const Index column = e % width;
    const auto part = static_cast<unsigned>(e / width);
    for (Index row = part; row < rows; row += parts) output[row * width + column] = 0;
    for (Index i = 0; i < count; i++) {
      const int row = indices[i];
      if (row >= 0 && row < rows && static_cast<unsigned>(row) % step == part) output[row * width + column] += source[i * width + column];
    }
  }
}

#define DEFINE(DTYPE, T)                                                                                               \
  OPT_KERNEL(gather_##DTYPE)(const T* table, const int* indices, T* output, Index rows, Index width, Index count) {    \
    if (count * width < 1ll << 31) gather<unsigned>(table, indices, output, rows, width, count);                       \
    else gather<Index>(table, indices, output, rows, width, count);                                                    \
  }                                                                                                                    \
  OPT_KERNEL(scatterAdd_##DTYPE)                                                                                       \
  (const T* source, const int* indices, T* output, Index rows, Index width, Index count, Index parts) {                \
    scatterAdd(source, indices, output, rows, width, count, parts);                                                    \
  }
OPT_EACH_DTYPE(DEFINE)
