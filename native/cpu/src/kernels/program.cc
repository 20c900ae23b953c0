// Programs that no build has seen (elementwise maps, unknown rules): a loop per op over blocks that stay in the first cache.
#include "kernels/wide.h"

#include "kernels/arithmetic.h"
#include "kernels/command.h"
#include "kernels/parallel.h"
#include "kernels/program-ops.h"
#include "kernels/stored-block.h"

namespace opt::OPT_ISA {
namespace {

constexpr int64_t BLOCK = 512;
constexpr int64_t GRAIN = 32 * BLOCK;
// Of an instruction: op, where the result goes, three operands.
constexpr int64_t INSTRUCTION = 5;

/**
 * Operands are places in one table: first the buffers, then uniform values, then registers. Instructions of the uniform part
 * compute single values, those of the element part blocks; at the end of each block results are copied to the buffers they update.
 */
struct Code {
  int64_t buffers, uniforms, registers, uniformCount, elementCount, storeCount;
  const double *uniformCode, *elementCode, *stores;

  explicit Code(const double* numbers) {
    Command code(numbers);
    buffers = code.integer();
    uniforms = code.integer();
    registers = code.integer();
    uniformCount = code.integer();
    elementCount = code.integer();
    storeCount = code.integer();
    uniformCode = code.numbers(uniformCount * INSTRUCTION);
    elementCode = code.numbers(elementCount * INSTRUCTION);
    stores = code.numbers(storeCount * 2);
  }
};

/** A buffer of the launch: `rank` strides in elements, or dense (null) in the order of the loop, perhaps stored in fewer bits. */
template <typename T>
struct Operand {
  T* data;
  const double* strides;
  StoredBuffer stored;
  bool isWritten;
};

enum class Layout { DENSE, STRIDED, STORED };

struct Shape {
  const double* extents;
  int64_t rank;
};

template <typename T>
void execute(const double* instruction, int64_t count, T* const* table, int64_t n) {
  for (int64_t k = 0; k < count; k++, instruction += INSTRUCTION) {
    const auto place = [&](int i) { return table[static_cast<int64_t>(instruction[i])]; };
    BLOCK_OPS<T>[static_cast<int64_t>(instruction[0])](place(1), place(2), place(3), place(4), n);
  }
}

/** Reads elements `begin` to `begin` + n of a strided operand in the order of the loop. */
template <typename T>
void gatherBlock(const Operand<T>& operand, const Shape& shape, int64_t begin, int64_t n, T* out) {
  constexpr int64_t MAX_RANK = 16;
  int64_t position[MAX_RANK];
  int64_t offset = 0, rest = begin;
  for (int64_t d = shape.rank - 1; d >= 0; d--) {
    const auto extent = static_cast<int64_t>(shape.extents[d]);
    position[d] = rest % extent;
    rest /= extent;
    offset += position[d] * static_cast<int64_t>(operand.strides[d]);
  }
  const int64_t last = shape.rank - 1;
  const auto rowLength = static_cast<int64_t>(shape.extents[last]);
  const auto step = static_cast<int64_t>(operand.strides[last]);
  for (int64_t done = 0; done < n;) {
    const int64_t run = smaller(rowLength - position[last], n - done);
    const T* source = operand.data + offset;
    if (step == 1) {
      for (int64_t i = 0; i < run; i++) out[done + i] = source[i];
    } else if (step == 0) {
      for (int64_t i = 0; i < run; i++) out[done + i] = *source;
    } else {
      for (int64_t i = 0; i < run; i++) out[done + i] = source[i * step];
    }
    done += run;
    offset += run * step;
    position[last] += run;
    for (int64_t d = last; d > 0 && position[d] == static_cast<int64_t>(shape.extents[d]); d--) {
      offset += static_cast<int64_t>(operand.strides[d - 1]) - position[d] * static_cast<int64_t>(operand.strides[d]);
      position[d] = 0;
      position[d - 1]++;
    }
  }
}

/** Runs the program over one range of one tensor (or of the only output of a map). */
template <typename T>
void runRange(const Code& code, const T* uniformValues, const Operand<T>* operands, const Shape& shape, int64_t begin,
              int64_t end, const Stores& stores, T** table, T* blocks) {
  const int64_t places = code.buffers + code.uniforms + code.registers;
  for (int64_t p = 0; p < places; p++) table[p] = blocks + p * BLOCK;
  const int64_t widest = smaller(BLOCK, end - begin);
  for (int64_t u = 0; u < code.uniforms; u++) {
    T* block = table[code.buffers + u];
    for (int64_t i = 0; i < widest; i++) block[i] = uniformValues[u];
  }
  for (int64_t at = begin; at < end; at += BLOCK) {
    const int64_t n = smaller(BLOCK, end - at);
    for (int64_t b = 0; b < code.buffers; b++) {
      if (operands[b].stored.format != 0) {
        widenBlock(operands[b].stored, stores, at, n, table[b]);
      } else if (operands[b].strides == nullptr) {
        table[b] = operands[b].data + at;
      } else {
        gatherBlock(operands[b], shape, at, n, table[b]);
      }
    }
    execute(code.elementCode, code.elementCount, table, n);
    for (int64_t s = 0; s < code.storeCount; s++) {
      T* target = table[static_cast<int64_t>(code.stores[2 * s])];
      const T* source = table[static_cast<int64_t>(code.stores[2 * s + 1])];
      for (int64_t i = 0; i < n; i++) target[i] = source[i];
    }
    for (int64_t b = 0; b < code.buffers; b++) {
      const Operand<T>& operand = operands[b];
      if (operand.stored.format != 0 && operand.isWritten) narrowBlock(operand.stored, stores, table[b], at, n);
    }
  }
}

template <typename T>
Status launchProgram(Command& command) {
  const Code code(command.pointer<const double>());
  const int64_t scalars = command.integer();
  const double* scalarValues = command.numbers(scalars);
  Shape shape;
  shape.rank = command.integer();
  shape.extents = command.numbers(shape.rank);
  Stores stores;
  stores.keys = readKeys(command);
  const std::optional<Codecs> codecs = readCodecs(command);
  if (codecs) stores.codecs = &*codecs;
  const int64_t line = codecs ? PACKED_BLOCK : 1;
  const int64_t tensors = command.integer();
  const double* starts = command.numbers(tensors + 1);
  const int64_t places = code.buffers + code.uniforms + code.registers;
  const int threads = command.threads;
  Scratch<T> blocks(places * BLOCK * threads), uniformValues(code.uniforms);
  Scratch<T*> tables(places * threads);
  Scratch<Operand<T>> operands(tensors * code.buffers);
  if (!blocks || !uniformValues || !tables || !operands) return Status::OUT_OF_MEMORY;

  for (int64_t i = 0; i < tensors * code.buffers; i++) {
    const double start = command.number();
    operands[i] = {address<T>(start), nullptr, {0, start, 0}, false};
    const auto layout = static_cast<Layout>(command.integer());
    if (layout == Layout::STRIDED) operands[i].strides = command.numbers(shape.rank);
    if (layout == Layout::STORED) {
      operands[i].stored.format = command.number();
      operands[i].isWritten = command.flag();
      if (isRandom(operands[i].stored.format)) operands[i].stored.place = command.number();
    }
  }
  // Scalars come first among the uniform values; constants and what follows from both is computed.
  for (int64_t s = 0; s < scalars; s++) uniformValues[s] = static_cast<T>(scalarValues[s]);
  for (int64_t p = 0; p < code.uniforms; p++) tables[code.buffers + p] = uniformValues.data() + p;
  for (int64_t k = 0; k < code.uniformCount; k++) {
    const double* instruction = code.uniformCode + k * INSTRUCTION;
    if (instruction[0] < 0) {
      *tables[static_cast<int64_t>(instruction[1])] = static_cast<T>(instruction[2]);
    } else {
      execute(instruction, 1, tables.data(), 1);
    }
  }
  parallelFor(static_cast<int64_t>(starts[tensors]), GRAIN, threads, [&](int64_t begin, int64_t end, int thread) {
    int64_t low = 0, high = tensors;
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (starts[middle] <= static_cast<double>(begin) ? low : high) = middle;
    }
    for (int64_t t = low; t < tensors && starts[t] < static_cast<double>(end); t++) {
      const auto start = static_cast<int64_t>(starts[t]), stop = static_cast<int64_t>(starts[t + 1]);
      const int64_t from = begin <= start ? 0 : (begin - start) / line * line;
      const int64_t to = end >= stop ? stop - start : (end - start) / line * line;
      if (from >= to) continue;
      runRange(code, uniformValues.data(), operands.data() + t * code.buffers, shape, from, to, stores, tables.data() + places * thread,
               blocks.data() + places * BLOCK * thread);
    }
  });
  return Status::OK;
}

}  // namespace

Status runProgram(Command& command) {
  if (command.flag()) return launchProgram<double>(command);
  return launchProgram<float>(command);
}

}  // namespace opt::OPT_ISA
