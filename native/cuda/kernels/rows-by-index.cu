// Gathering rows by index, and adding rows up by index in their order.
#include "block.cuh"
#include "fields.cuh"

/** Integer: 32 bits where the size allows, because 64-bit division is slow. */
template <typename Integer, typename T>
__device__ void gather(const GatherFields<T>& given) {
  const Index rows = given.rows, width = given.width;
  for (Index e = firstElement(); e < given.count * width; e += elementStride()) {
    const auto at = static_cast<Integer>(e), across = static_cast<Integer>(width);
    const Index row = given.indices[at / across];
    given.output[e] = row < 0 || row >= rows ? static_cast<T>(__int_as_float(0x7fc00000)) : given.table[row * width + at % across];
  }
}

/** A thread owns one column of the rows that leave remainder `part` by `parts`, and walks all indices: no two threads add to one element. */
template <typename T>
__device__ void scatterAdd(const ScatterAddFields<T>& given, Index parts) {
  const Index rows = given.rows, width = given.width;
  T* output = given.output;
  const auto step = static_cast<unsigned>(parts);
  for (Index e = firstElement(); e < width * parts; e += elementStride()) {
    const Index column = e % width;
    const auto part = static_cast<unsigned>(e / width);
    for (Index row = part; row < rows; row += parts) output[row * width + column] = 0;
    for (Index i = 0; i < given.count; i++) {
      const int row = given.indices[i];
      if (row >= 0 && row < rows && static_cast<unsigned>(row) % step == part) output[row * width + column] += given.source[i * width + column];
    }
  }
}

#define DEFINE(DTYPE, T)                                                                                               \
  OPT_KERNEL(gather_##DTYPE)(GatherFields<T> given) {                                                                  \
    if (given.count * given.width < 1ll << 31) gather<unsigned>(given);                                                \
    else gather<Index>(given);                                                                                         \
  }                                                                                                                    \
  OPT_KERNEL(scatterAdd_##DTYPE)(ScatterAddFields<T> given, Index parts) { scatterAdd(given, parts); }
OPT_EACH_DTYPE(DEFINE)
