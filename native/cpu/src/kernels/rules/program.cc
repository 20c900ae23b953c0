// Programs that no build has seen (elementwise maps, unknown rules): a loop per op over blocks that stay in the first cache.
#include "kernels/wide.h"

#include <new>

#include "commands.h"
#include "kernels/arithmetic.h"
#include "kernels/parallel.h"
#include "kernels/rules/program-ops.h"
#include "kernels/rules/program.h"
#include "kernels/rules/stored-block.h"

namespace opt::OPT_ISA {
namespace {

constexpr int64_t BLOCK = PROGRAM_BLOCK;
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

struct Shape {
  const double* extents;
  int64_t rank;
};

/** Of a record, numbers before the strides. */
constexpr int64_t STRIDES = 4;

/** A buffer of the launch: `rank` strides in elements, or dense (null) in the order of the loop, perhaps stored in fewer bits. */
template <typename T>
struct Operand {
  /** From a record: address, format, whether it is written, place, strides. */
  static Operand of(const double* record) {
    return {address<T>(record[0]), record + STRIDES, {record[1], record[0], record[3]}, record[2] != 0};
  }

  void forgetStridesIfDense(const Shape& shape) {
    double expected = 1;
    for (int64_t d = shape.rank - 1; d >= 0; d--) {
      if (shape.extents[d] != 1 && strides[d] != expected) return;
      expected *= shape.extents[d];
    }
    strides = nullptr;
  }

  T* data;
  const double* strides;
  StoredBuffer stored;
  bool isWritten;
};

template <typename T>
void execute(const double* instruction, int64_t count, T* const* table, int64_t n) {
  for (int64_t k = 0; k < count; k++, instruction += INSTRUCTION) {
    const auto place = [&](int i) { return table[static_cast<int64_t>(instruction[i])]; };
    BLOCK_OPS<T>[static_cast<int64_t>(instruction[0])](place(1), place(2), place(3), place(4), n);
  }
}

/** A program in one launch: its uniform values and, for each thread, a table of places and their blocks. */
template <typename T>
struct Machine {
  Machine(const double* numbers, const Numbers& scalars, int threads)
      : code(numbers),
        places(code.buffers + code.uniforms + code.registers),
        blocks(places * BLOCK * threads + code.uniforms),
        uniformValues(blocks.data() + places * BLOCK * threads),
        tables(places * threads),
        widths(threads) {
    if (!*this) return;
    for (int t = 0; t < threads; t++) widths[t] = 0;
    // Scalars come first among the uniform values; constants and what follows from both is computed.
    for (int64_t s = 0; s < scalars.count; s++) uniformValues[s] = static_cast<T>(scalars[s]);
    for (int64_t p = 0; p < code.uniforms; p++) tables[code.buffers + p] = uniformValues + p;
    for (int64_t k = 0; k < code.uniformCount; k++) {
      const double* instruction = code.uniformCode + k * INSTRUCTION;
      if (instruction[0] < 0) {
        *tables[static_cast<int64_t>(instruction[1])] = static_cast<T>(instruction[2]);
      } else {
        execute(instruction, 1, tables.data(), 1);
      }
    }
  }

  explicit operator bool() const { return blocks && tables && widths; }

  T* block(int thread, int64_t place) { return blocks.data() + (places * thread + place) * BLOCK; }

  /** A thread's table, with uniform values in blocks of `width` elements. */
  T** tableOf(int thread, int64_t width) {
    T** table = tables.data() + places * thread;
    if (widths[thread] >= width) return table;
    widths[thread] = width;
    for (int64_t p = code.buffers; p < places; p++) table[p] = block(thread, p);
    for (int64_t u = 0; u < code.uniforms; u++) {
      for (int64_t i = 0; i < width; i++) table[code.buffers + u][i] = uniformValues[u];
    }
    return table;
  }

  const Code code;
  const int64_t places;
  Scratch<T> blocks;
  /** Behind the blocks. */
  T* const uniformValues;
  Scratch<T*> tables;
  /** How far each thread's blocks of uniform values are filled. */
  Scratch<int64_t> widths;
};

/** Calls `visit(elements, step, done, run)` for each run along the last dimension, in elements `begin` to `begin` + n of the loop. */
template <typename T, typename Visit>
inline void walkBlock(const Operand<T>& operand, const Shape& shape, int64_t begin, int64_t n, const Visit& visit) {
  constexpr int64_t MAX_RANK = 16;
  // Added to the offset where a dimension ends and the one outside it takes a step.
  int64_t position[MAX_RANK], extent[MAX_RANK], turn[MAX_RANK];
  int64_t offset = 0, rest = begin;
  for (int64_t d = shape.rank - 1; d >= 0; d--) {
    const auto stride = static_cast<int64_t>(operand.strides[d]);
    extent[d] = static_cast<int64_t>(shape.extents[d]);
    position[d] = rest % extent[d];
    rest /= extent[d];
    offset += position[d] * stride;
    turn[d] = (d > 0 ? static_cast<int64_t>(operand.strides[d - 1]) : 0) - extent[d] * stride;
  }
  const int64_t last = shape.rank - 1;
  const auto step = static_cast<int64_t>(operand.strides[last]);
  for (int64_t done = 0; done < n;) {
    const int64_t run = smaller(extent[last] - position[last], n - done);
    visit(operand.data + offset, step, done, run);
    done += run;
    offset += run * step;
    position[last] += run;
    for (int64_t d = last; d > 0 && position[d] == extent[d]; d--) {
      offset += turn[d];
      position[d] = 0;
      position[d - 1]++;
    }
  }
}

template <typename T>
void gatherBlock(const Operand<T>& operand, const Shape& shape, int64_t begin, int64_t n, T* out) {
  walkBlock(operand, shape, begin, n, [out](const T* source, int64_t step, int64_t done, int64_t run) {
    if (step == 1) {
      OPT_INDEPENDENT
      for (int64_t i = 0; i < run; i++) out[done + i] = source[i];
    } else if (step == 0) {
      OPT_INDEPENDENT
      for (int64_t i = 0; i < run; i++) out[done + i] = *source;
    } else {
      for (int64_t i = 0; i < run; i++) out[done + i] = source[i * step];
    }
  });
}

template <typename T>
void scatterBlock(const Operand<T>& operand, const Shape& shape, int64_t begin, int64_t n, const T* block) {
  walkBlock(operand, shape, begin, n, [block](T* target, int64_t step, int64_t done, int64_t run) {
    if (step == 1) {
      OPT_INDEPENDENT
      for (int64_t i = 0; i < run; i++) target[i] = block[done + i];
    } else {
      for (int64_t i = 0; i < run; i++) target[i * step] = block[done + i];
    }
  });
}

/** Runs the program over one range of one tensor (or of the only output of a map). */
template <typename T>
void runRange(Machine<T>& machine, const Operand<T>* operands, const Shape& shape, int64_t begin, int64_t end, const Stores& stores,
              int thread) {
  const Code& code = machine.code;
  T** table = machine.tableOf(thread, smaller(BLOCK, end - begin));
  for (int64_t at = begin; at < end; at += BLOCK) {
    const int64_t n = smaller(BLOCK, end - at);
    for (int64_t b = 0; b < code.buffers; b++) {
      table[b] = machine.block(thread, b);
      if (operands[b].stored.format != 0) {
        widenBlock(operands[b].stored, stores, at, n, table[b]);
      } else if (operands[b].strides == nullptr) {
        table[b] = operands[b].data + at;
      } else if (!operands[b].isWritten) {
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
      if (!operand.isWritten) continue;
      if (operand.stored.format != 0) {
        narrowBlock(operand.stored, stores, table[b], at, n);
      } else if (operand.strides != nullptr) {
        scatterBlock(operand, shape, at, n, table[b]);
      }
    }
  }
}

template <typename T>
Status launchProgram(const ProgramFields& given, int threads) {
  Machine<T> machine(given.code, given.scalars, threads);
  const int64_t buffers = machine.code.buffers;
  const Shape shape{given.shape.data, given.shape.count};
  const std::optional<Codecs> codecs = codecsOf(given.codebooks);
  const Stores stores{codecs ? &*codecs : nullptr, keysOf(given.keys)};
  const Tensors tensors(given.tensors);
  Scratch<Operand<T>> operands(tensors.count * buffers);
  if (!machine || !operands) return Status::OUT_OF_MEMORY;
  for (int64_t i = 0; i < tensors.count * buffers; i++) {
    operands[i] = Operand<T>::of(tensors.records + i * (STRIDES + shape.rank));
    operands[i].forgetStridesIfDense(shape);
  }
  parallelFor(tensors.total(), GRAIN, threads, [&](int64_t begin, int64_t end, int thread) {
    tensors.forEach(begin, end, codecs ? PACKED_BLOCK : 1, [&](int64_t t, int64_t from, int64_t to) {
      runRange(machine, operands.data() + t * buffers, shape, from, to, stores, thread);
    });
  });
  return Status::OK;
}

template <typename T>
class ProgramEpilogue final : public Epilogue<T> {
 public:
  ProgramEpilogue(const MatmulFields<T>& given, int threads)
      : machine(given.code, given.scalars, threads),
        buffers(machine.code.buffers),
        all{static_cast<double>(given.batch), static_cast<double>(given.m), static_cast<double>(given.n)},
        dense{static_cast<double>(given.m * given.n), static_cast<double>(given.n), 1},
        operands(buffers),
        inBox(buffers * threads) {
    if (!*this) return;
    bool isOperand = false;
    for (int64_t b = 1; b < buffers - 1; b++) {
      operands[b] = Operand<T>::of(given.operands.data + (b - 1) * (STRIDES + 3));
      isOperand |= operands[b].data == given.output;
    }
    operands[buffers - 1] = {given.output, dense, {}, true};
    this->product = given.product != nullptr ? given.product : isOperand ? nullptr : given.output;
  }

  explicit operator bool() const { return machine && operands && inBox; }

  void apply(const Box& box, int thread) override {
    const double extents[] = {1, static_cast<double>(box.rows), static_cast<double>(box.columns)};
    run({box.item, box.row, box.column}, extents, 0, box.rows * box.columns, thread);
  }

  void applyTo(int64_t begin, int64_t end, int thread) override {
    run({0, 0, 0}, all, begin, end, thread);
  }

 private:
  /** Computes elements `begin` to `end` of a box. */
  void run(const int64_t (&from)[3], const double* extents, int64_t begin, int64_t end, int thread) {
    Operand<T>* here = inBox.data() + buffers * thread;
    for (int64_t b = 0; b < buffers; b++) {
      here[b] = b == 0 ? Operand<T>{this->product, dense, {}, false} : operands[b];
      for (int d = 0; d < 3; d++) here[b].data += from[d] * static_cast<int64_t>(here[b].strides[d]);
      here[b].forgetStridesIfDense({extents, 3});
    }
    // A single column is one run.
    const Shape shape{extents, extents[2] > 1 ? 3 : extents[1] > 1 ? 2 : 1};
    runRange(machine, here, shape, begin, end, Stores{}, thread);
  }

  Machine<T> machine;
  const int64_t buffers;
  const double all[3], dense[3];
  /** Operands from the output's first element on, and from that of each thread's box. */
  Scratch<Operand<T>> operands, inBox;
};

}  // namespace

template <typename T>
std::unique_ptr<Epilogue<T>> epilogueOf(const MatmulFields<T>& given, int threads) {
  std::unique_ptr<ProgramEpilogue<T>> epilogue(new (std::nothrow) ProgramEpilogue<T>(given, threads));
  if (epilogue && !*epilogue) epilogue = nullptr;
  return epilogue;
}
template std::unique_ptr<Epilogue<float>> epilogueOf(const MatmulFields<float>&, int);
template std::unique_ptr<Epilogue<double>> epilogueOf(const MatmulFields<double>&, int);

Status run(const ProgramFields& given, int threads) {
  return given.isDouble ? launchProgram<double>(given, threads) : launchProgram<float>(given, threads);
}

}  // namespace opt::OPT_ISA
