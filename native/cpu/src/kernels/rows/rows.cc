// Row programs that were compiled ahead: softmax, norms, losses and their gradients.
#include "kernels/wide.h"

#include "commands.h"
#include "kernels/parallel.h"
#include "kernels/rows/rows.h"

namespace opt::OPT_ISA {
namespace {

/** The memory and numbers of a launch. */
template <typename T>
struct RowArguments {
  const T* const* inputs;
  T* const* outputs;
  const double* scalars;
  const int32_t* labels;
  int64_t rows, length, ignored;
  /** Rows of a chunk of a sum of columns. */
  int64_t chunk;
};

/** Of rows, or of columns, `begin` to `end`. */
template <typename T>
using RowFunction = void (*)(const RowArguments<T>& given, int64_t begin, int64_t end);

struct RowProgram {
  RowFunction<float> rowsF32;
  RowFunction<double> rowsF64;
  RowFunction<float> columnsF32;
  RowFunction<double> columnsF64;
  /** What an element costs. */
  int work;
};

// Columns that one thread adds up at a time.
constexpr int64_t COLUMNS = 64;

#include "rows.inc"

template <typename T>
Status launchRows(const RowsFields& launch, RowFunction<T> RowProgram::*ofRows, RowFunction<T> RowProgram::*ofColumns, int threads) {
  const RowProgram& program = ROW_PROGRAMS[launch.program];
  const T* inputs[MAX_SLICES];
  T* outputs[MAX_SLICES];
  for (int64_t k = 0; k < launch.inputs.count; k++) inputs[k] = address<const T>(launch.inputs[k]);
  for (int64_t k = 0; k < launch.outputs.count; k++) outputs[k] = address<T>(launch.outputs[k]);
  const RowArguments<T> given{inputs, outputs, launch.scalars.data, launch.labels,
                              launch.rows, launch.length, launch.ignoreIndex, rowsOfChunk(launch.length)};
  if (const auto function = program.*ofRows) {
    parallelFor(given.rows, grainOf(program.work * given.length), threads, [&](int64_t begin, int64_t end) { function(given, begin, end); });
  }
  if (const auto function = program.*ofColumns) {
    const int most = given.rows * given.length < CHUNK ? 1 : threads;
    parallelFor(given.length, COLUMNS, most, [&](int64_t begin, int64_t end) { function(given, begin, end); });
  }
  return Status::OK;
}

}  // namespace

Status run(const RowsFields& given, int threads) {
  return given.isDouble ? launchRows<double>(given, &RowProgram::rowsF64, &RowProgram::columnsF64, threads)
                        : launchRows<float>(given, &RowProgram::rowsF32, &RowProgram::columnsF32, threads);
}

}  // namespace opt::OPT_ISA
