// log(sum(exp(x - max))) of a row, which softmax and cross-entropy share.
#pragma once
#include "block.cuh"

/** A NaN makes both NaN. */
template <typename T>
struct LogSumExp {
  T max;
  T logSum;
};

template <typename T>
__device__ LogSumExp<T> logSumExp(const T* x, Index length) {
  const auto larger = [](T a, T b) { return a < b || b != b ? b : a; };
  T largest = static_cast<T>(__int_as_float(static_cast<int>(0xff800000)));  // -infinity
  for (Index i = threadIdx.x; i < length; i += blockDim.x) largest = larger(largest, x[i]);
  largest = combineBlock(largest, larger);
  const double sum = sumOver(length, [=](Index i) { return opt_weight(x[i] - largest); });
  return {largest, static_cast<T>(log(sum))};
}
