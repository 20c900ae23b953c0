// (log-)softmax of rows and its gradient.
#include "kernels/wide.h"

#include "kernels/command.h"
#include "kernels/parallel.h"
#include "kernels/rows.h"

namespace opt::OPT_ISA {
namespace {

template <typename T>
Status softmax(Command& command) {
  const bool log = command.flag();
  const int64_t rows = command.integer(), length = command.integer();
  const T* input = command.pointer<const T>();
  T* output = command.pointer<T>();
  parallelFor(rows, grainOf(8 * length), command.threads, [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
      const T* x = input + row * length;
      T* y = output + row * length;
      if (log) {
        const LogSumExp<T> of(x, length);
        const T logSum = static_cast<T>(of.logSum);
        OPT_INDEPENDENT
        for (int64_t i = 0; i < length; i++) y[i] = (x[i] - of.largest) - logSum;
      } else {
        const T share = static_cast<T>(1 / weigh(x, length, largestOf(x, length), y));
        OPT_INDEPENDENT
        for (int64_t i = 0; i < length; i++) y[i] *= share;
      }
    }
  });
  return Status::OK;
}

template <typename T>
Status softmaxGrad(Command& command) {
  const bool log = command.flag();
  const int64_t rows = command.integer(), length = command.integer();
  const T* forward = command.pointer<const T>();
  const T* gradient = command.pointer<const T>();
  T* output = command.pointer<T>();
  parallelFor(rows, grainOf(8 * length), command.threads, [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
      const T* y = forward + row * length;
      const T* g = gradient + row * length;
      T* out = output + row * length;
      if (log) {
        const T sum = static_cast<T>(sumOf(length, [=](int64_t i) { return static_cast<double>(g[i]); }));
        OPT_INDEPENDENT
        for (int64_t i = 0; i < length; i++) out[i] = g[i] - weightOf(y[i]) * sum;
      } else {
        const T sum = static_cast<T>(sumOf(length, [=](int64_t i) { return static_cast<double>(g[i] * y[i]); }));
        OPT_INDEPENDENT
        for (int64_t i = 0; i < length; i++) out[i] = y[i] * (g[i] - sum);
      }
    }
  });
  return Status::OK;
}

}  // namespace

Status runSoftmax(Command& command) { return command.flag() ? softmax<double>(command) : softmax<float>(command); }
Status runSoftmaxGrad(Command& command) { return command.flag() ? softmaxGrad<double>(command) : softmaxGrad<float>(command); }

}  // namespace opt::OPT_ISA
