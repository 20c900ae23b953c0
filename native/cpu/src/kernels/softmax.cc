// (log-)softmax of rows and its gradient.
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
      const LogSumExp<T> of(x, length);
      const double shift = of.largest + of.logSum;
      if (log) {
        OPT_INDEPENDENT
        for (int64_t i = 0; i < length; i++) y[i] = static_cast<T>((static_cast<double>(x[i]) - of.largest) - of.logSum);
      } else {
        OPT_INDEPENDENT
        for (int64_t i = 0; i < length; i++) y[i] = static_cast<T>(expFor<T>(static_cast<double>(x[i]) - shift));
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
        const double sum = sumOf(length, [=](int64_t i) { return static_cast<double>(g[i]); });
        OPT_INDEPENDENT
        for (int64_t i = 0; i < length; i++) {
          out[i] = static_cast<T>(static_cast<double>(g[i]) - expFor<T>(static_cast<double>(y[i])) * sum);
        }
      } else {
        const double sum = sumOf(length, [=](int64_t i) { return static_cast<double>(g[i]) * static_cast<double>(y[i]); });
        OPT_INDEPENDENT
        for (int64_t i = 0; i < length; i++) {
          out[i] = static_cast<T>(static_cast<double>(y[i]) * (static_cast<double>(g[i]) - sum));
        }
      }
    }
  });
  return Status::OK;
}

}  // namespace

Status runSoftmax(Command& command) { return command.flag() ? softmax<double>(command) : softmax<float>(command); }
Status runSoftmaxGrad(Command& command) { return command.flag() ? softmaxGrad<double>(command) : softmaxGrad<float>(command); }

}  // namespace opt::OPT_ISA
