// Gathering rows by index, and adding rows up by index.
#include <cstring>

#include "kernels/arithmetic.h"
#include "kernels/command.h"
#include "kernels/loops.h"
#include "kernels/parallel.h"

namespace opt::OPT_ISA {
namespace {

template <typename T>
Status gather(Command& command) {
  const int64_t rows = command.integer(), width = command.integer(), count = command.integer();
  const T* table = command.pointer<const T>();
  const int32_t* indices = command.pointer<const int32_t>();
  T* output = command.pointer<T>();
  parallelFor(count, grainOf(width), command.threads, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      T* out = output + i * width;
      const int64_t row = indices[i];
      if (row >= 0 && row < rows) {
        const T* source = table + row * width;
        for (int64_t j = 0; j < width; j++) out[j] = source[j];
      } else {
        for (int64_t j = 0; j < width; j++) out[j] = NAN;
      }
    }
  });
  return Status::OK;
}

/** Each part owns some rows of the output and walks all indices: additions keep their order, and no two threads meet. */
template <typename T>
Status scatterAdd(Command& command) {
  const int64_t rows = command.integer(), width = command.integer(), count = command.integer();
  const T* source = command.pointer<const T>();
  const int32_t* indices = command.pointer<const int32_t>();
  T* output = command.pointer<T>();
  const int64_t parts = smaller<int64_t>(16, larger<int64_t>(1, count * width / 16384));
  parallelFor(rows, ceilDivide(rows, parts), command.threads, [=](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < count; i++) {
      const int64_t row = indices[i];
      if (row < begin || row >= end) continue;
      T* out = output + row * width;
      const T* from = source + i * width;
      OPT_INDEPENDENT
      for (int64_t j = 0; j < width; j++) out[j] += from[j];
    }
  });
  return Status::OK;
}

}  // namespace

Status runGather(Command& command) { return command.flag() ? gather<double>(command) : gather<float>(command); }
Status runScatterAdd(Command& command) { return command.flag() ? scatterAdd<double>(command) : scatterAdd<float>(command); }

}  // namespace opt::OPT_ISA
