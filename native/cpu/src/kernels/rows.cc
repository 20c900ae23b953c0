// Row programs that were compiled ahead: softmax, norms, losses and their gradients.
#include "kernels/wide.h"

#include "kernels/command.h"
#include "kernels/parallel.h"
#include "kernels/rows.h"

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
  int inputs, outputs, scalars;
  bool labels;
  /** What an element costs. */
  int work;
};

// Columns that one thread adds up at a time.
constexpr int64_t COLUMNS = 64;

#include "rows.inc"

template <typename T>
Status launchRows(Command& command, RowFunction<T> RowProgram::*ofRows, RowFunction<T> RowProgram::*ofColumns) {
  const RowProgram& program = ROW_PROGRAMS[command.integer()];
  const T* inputs[MAX_SLICES];
  T* outputs[MAX_SLICES];
  RowArguments<T> given{inputs, outputs, nullptr, nullptr, command.integer(), command.integer(), command.integer(), 0};
  given.chunk = rowsOfChunk(given.length);
  given.scalars = command.numbers(program.scalars);
  if (program.labels) given.labels = command.pointer<const int32_t>();
  for (int k = 0; k < program.inputs; k++) inputs[k] = command.pointer<const T>();
  for (int k = 0; k < program.outputs; k++) outputs[k] = command.pointer<T>();
  if (const auto function = program.*ofRows) {
    parallelFor(given.rows, grainOf(program.work * given.length), command.threads, [&](int64_t begin, int64_t end) { function(given, begin, end); });
  }
  if (const auto function = program.*ofColumns) {
    const int threads = given.rows * given.length < CHUNK ? 1 : command.threads;
    parallelFor(given.length, COLUMNS, threads, [&](int64_t begin, int64_t end) { function(given, begin, end); });
  }
  return Status::OK;
}

}  // namespace

Status runRows(Command& command) {
  return command.flag() ? launchRows<double>(command, &RowProgram::rowsF64, &RowProgram::columnsF64)
                        : launchRows<float>(command, &RowProgram::rowsF32, &RowProgram::columnsF32);
}

}  // namespace opt::OPT_ISA
