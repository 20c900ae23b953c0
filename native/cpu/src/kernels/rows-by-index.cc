// Gathering rows by index, and adding rows up by index.
#include <cstring>

#include "commands.h"
#include "kernels/arithmetic.h"
#include "kernels/loops.h"
#include "kernels/parallel.h"

namespace opt::OPT_ISA {
namespace {

template <typename T>
Status gather(const GatherFields<T>& given, int threads) {
  const int64_t rows = given.rows, width = given.width;
  parallelFor(given.count, grainOf(width), threads, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      T* out = given.output + i * width;
      const int64_t row = given.indices[i];
      if (row >= 0 && row < rows) {
        const T* source = given.table + row * width;
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
Status scatterAdd(const ScatterAddFields<T>& given, int threads) {
  const int64_t rows = given.rows, width = given.width, count = given.count;
  const int64_t parts = smaller<int64_t>(16, larger<int64_t>(1, count * width / 16384));
  parallelFor(rows, ceilDivide(rows, parts), threads, [=](int64_t begin, int64_t end) {
    std::memset(given.output + begin * width, 0, sizeof(T) * static_cast<size_t>((end - begin) * width));
    for (int64_t i = 0; i < count; i++) {
      const int64_t row = given.indices[i];
      if (row < begin || row >= end) continue;
      T* out = given.output + row * width;
      const T* from = given.source + i * width;
      OPT_INDEPENDENT
      for (int64_t j = 0; j < width; j++) out[j] += from[j];
    }
  });
  return Status::OK;
}

}  // namespace

OPT_RUN(GatherFields, gather)
OPT_RUN(ScatterAddFields, scatterAdd)

}  // namespace opt::OPT_ISA
