// Cross-entropy of rows of logits with integer labels, and its gradient.
#include "kernels/wide.h"

#include "kernels/command.h"
#include "kernels/parallel.h"
#include "kernels/rows.h"

namespace opt::OPT_ISA {
namespace {

template <typename T>
Status crossEntropy(Command& command) {
  const int64_t rows = command.integer(), classes = command.integer(), ignored = command.integer();
  const T* logits = command.pointer<const T>();
  const int32_t* labels = command.pointer<const int32_t>();
  T* output = command.pointer<T>();
  parallelFor(rows, grainOf(8 * classes), command.threads, [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
      const T* x = logits + row * classes;
      const int64_t label = labels[row];
      if (label == ignored) {
        output[row] = 0;
      } else if (label < 0 || label >= classes) {
        output[row] = NAN;
      } else {
        const LogSumExp<T> of(x, classes);
        output[row] = static_cast<T>(static_cast<double>(of.largest - x[label]) + of.logSum);
      }
    }
  });
  return Status::OK;
}

template <typename T>
Status crossEntropyGrad(Command& command) {
  const int64_t rows = command.integer(), classes = command.integer(), ignored = command.integer();
  const T* logits = command.pointer<const T>();
  const int32_t* labels = command.pointer<const int32_t>();
  const T* gradient = command.pointer<const T>();
  T* output = command.pointer<T>();
  parallelFor(rows, grainOf(8 * classes), command.threads, [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
      const T* x = logits + row * classes;
      T* out = output + row * classes;
      const int64_t label = labels[row];
      if (label == ignored || label < 0 || label >= classes) {
        const T value = label == ignored ? T(0) : T(NAN);
        for (int64_t i = 0; i < classes; i++) out[i] = value;
        continue;
      }
      const double sum = weigh(x, classes, largestOf(x, classes), out), scale = static_cast<double>(gradient[row]) / sum;
      // weight / sum - 1, without what cancels.
      const double others = sum - static_cast<double>(out[label]);
      const T factor = static_cast<T>(scale);
      OPT_INDEPENDENT
      for (int64_t i = 0; i < classes; i++) out[i] *= factor;
      out[label] = static_cast<T>(-others * scale);
    }
  });
  return Status::OK;
}

}  // namespace

Status runCrossEntropy(Command& command) { return command.flag() ? crossEntropy<double>(command) : crossEntropy<float>(command); }
Status runCrossEntropyGrad(Command& command) {
  return command.flag() ? crossEntropyGrad<double>(command) : crossEntropyGrad<float>(command);
}

}  // namespace opt::OPT_ISA
