/** Elementwise expressions with broadcasting, a row of the innermost dimension at a time. */
import { byteSize, type ComputeDType, type Launch, type Program, TRANSCENDENTAL_OPS } from "@opt/core/backend";
import { type FunctionBuilder, i32, type Local, ModuleBuilder, type Value, v128 } from "../assembler";
import { LANES } from "../emit/lanes";
import { emitOperations } from "../emit/operations";
import { ProgramWriter } from "../emit/program";
import type { Execution, KernelSource, Target } from "../kernel";

/** Vectors per turn of the loop over contiguous rows, where a vector takes but a few instructions. */
const UNROLL = 4;
/** Parts begin where cache lines do. */
const GRAIN = 16;

/** Words of the table: the output's address, the row's length, the outer rank and shape; then per input its address and byte strides, innermost first. */
const OUTPUT = 0;
const LENGTH = 1;
const RANK = 2;
const SHAPE = 3;

export const map: KernelSource<"map"> = {
  emit: (spec, target) => emitMap(spec.program, spec.dtype as ComputeDType, target),
  launch: launchMap,
};

/** (output, length, for each input its address and byte stride, ...scalars): one row. */
export function emitRow(module: ModuleBuilder, program: Program, dtype: ComputeDType, target: Target) {
  const lanes = LANES[dtype];
  const operations = emitOperations(module, program, dtype, target);
  const slots = program.buffers.map((_, slot) => slot);
  const scalarTypes = program.scalars.map(() => "f64" as const);
  const rowTypes = ["i32", "i32", ...slots.flatMap(() => ["i32", "i32"] as const), ...scalarTypes] as const;

  return module.function({ parameters: rowTypes }, (f, output, remaining, ...rest) => {
    const pointers = slots.map((slot) => rest[2 * slot] as Local<"i32">);
    const strides = slots.map((slot) => rest[2 * slot + 1] as Local<"i32">);
    const writer = new ProgramWriter(f, program, dtype, operations, rest.slice(2 * slots.length) as Value<"f64">[]);
    const advance = (elements: number, stride: (slot: number) => Value<"i32"> | number) => {
      for (const slot of slots) {
        const step = stride(slot);
        const bytes = typeof step === "number" ? elements * step : i32.mul(step, elements);
        f.increase(pointers[slot]!, bytes);
      }
      f.increase(output, elements * lanes.bytes);
      f.decrease(remaining, elements);
    };
    const contiguous = (count: number) =>
      f.while(i32.geU(remaining, count * lanes.count), () => {
        for (let offset = 0; offset < 16 * count; offset += 16) {
          const [result] = writer.element((slot) => v128.load(pointers[slot]!, offset));
          f.do(v128.store(output, result!, offset));
        }
        advance(count * lanes.count, () => lanes.bytes);
      });
    const isContiguous = strides.map((stride) => i32.eq(stride, lanes.bytes));
    f.if(isContiguous.reduce(i32.and, i32.const(1)), () => {
      if (countFunctions(program) === 0) contiguous(UNROLL);
      contiguous(1);
    });
    // Behind a contiguous row memory may end: nothing is loaded before a vector is left.
    f.if(i32.geU(remaining, lanes.count), () => {
      const vectors = slots.map((slot) => f.local("v128", lanes.loadSplat(pointers[slot]!)));
      f.doWhile(
        () => {
          for (const slot of slots) loadStrided(f, dtype, vectors[slot]!, pointers[slot]!, strides[slot]!);
          const [result] = writer.element((slot) => vectors[slot]!);
          f.do(v128.store(output, result!));
          advance(lanes.count, (slot) => strides[slot]!);
        },
        i32.geU(remaining, lanes.count),
      );
    });
    f.while(remaining, () => {
      const [result] = writer.element((slot) => lanes.loadOne(pointers[slot]!));
      f.do(lanes.storeOne(output, result!));
      advance(1, (slot) => strides[slot]!);
    });
  });
}

/** Exports `elements(start, end, table, ...scalars)` over one row's elements and `rows(...)`, the same over rows. */
function emitMap(program: Program, dtype: ComputeDType, target: Target): ModuleBuilder {
  const lanes = LANES[dtype];
  const module = new ModuleBuilder(target);
  const slots = program.buffers.map((_, slot) => slot);
  const row = emitRow(module, program, dtype, target);
  const scalarTypes = program.scalars.map(() => "f64" as const);
  const parameters = ["i32", "i32", "i32", ...scalarTypes] as const;
  /** Address of a word of input `slot`: 0 its address, 1 its innermost stride, 2 + d that of outer dimension d. */
  const inputWord = (table: Local<"i32">, rank: Value<"i32">, slot: number, word: Value<"i32"> | number) => {
    const words = i32.add(i32.mul(i32.add(rank, 2), slot), i32.add(i32.add(rank, word), SHAPE));
    return i32.load(i32.add(table, i32.shl(words, 2)));
  };
  module.function({ parameters, export: "elements" }, (f, start, end, table, ...scalars) => {
    const inputs = slots.flatMap((slot) => {
      const stride = inputWord(table, i32.const(0), slot, 1);
      return [i32.add(inputWord(table, i32.const(0), slot, 0), i32.mul(stride, start)), stride];
    });
    const output = i32.add(i32.load(table, 4 * OUTPUT), i32.mul(start, lanes.bytes));
    f.do(row(output, i32.sub(end, start), ...inputs, ...scalars));
  });

  module.function({ parameters, export: "rows" }, (f, start, end, table, ...scalars) => {
    const length = f.local("i32", i32.load(table, 4 * LENGTH));
    const rank = f.local("i32", i32.load(table, 4 * RANK));
    const bases = slots.map((slot) => f.local("i32", inputWord(table, rank, slot, 0)));
    const strides = slots.map((slot) => f.local("i32", inputWord(table, rank, slot, 1)));
    const pointers = slots.map(() => f.local("i32"));
    const [r, dimension, index, rest] = [f.local("i32"), f.local("i32"), f.local("i32"), f.local("i32")];
    const output = f.local("i32", i32.load(table, 4 * OUTPUT));
    f.increase(output, i32.mul(i32.mul(start, length), lanes.bytes));
    f.for(r, start, end, 1, () => {
      for (const slot of slots) f.set(pointers[slot]!, bases[slot]!);
      f.set(rest, r);
      f.set(dimension, rank);
      f.while(dimension, () => {
        f.decrease(dimension, 1);
        f.set(index, rest);
        f.if(dimension, () => {
          const size = i32.load(i32.add(table, i32.shl(dimension, 2)), 4 * SHAPE);
          f.set(index, i32.remU(rest, size));
          f.set(rest, i32.divU(rest, size));
        });
        for (const slot of slots) {
          const stride = inputWord(table, rank, slot, i32.add(dimension, 2));
          f.increase(pointers[slot]!, i32.mul(index, stride));
        }
      });
      f.do(row(output, length, ...slots.flatMap((slot) => [pointers[slot]!, strides[slot]!]), ...scalars));
      f.increase(output, i32.mul(length, lanes.bytes));
    });
  });
  return module;
}

/** Loads the next vector of a contiguous or strided input; a broadcast one keeps what it has. */
function loadStrided(
  f: FunctionBuilder,
  dtype: ComputeDType,
  vector: Local<"v128">,
  pointer: Local<"i32">,
  stride: Local<"i32">,
): void {
  const lanes = LANES[dtype];
  f.if(
    i32.eq(stride, lanes.bytes),
    () => f.set(vector, v128.load(pointer)),
    () =>
      f.if(stride, () => {
        f.set(vector, lanes.loadSplat(pointer));
        for (let lane = 1; lane < lanes.count; lane++) {
          f.set(vector, lanes.loadLane(i32.add(pointer, i32.mul(stride, lane)), vector, lane));
        }
      }),
  );
}

/** A transcendental op takes about as long as reading this many elements. */
const COST_OF_FUNCTION = 8;
const FUNCTIONS: ReadonlySet<string> = new Set(TRANSCENDENTAL_OPS);

const countFunctions = (program: Program) => program.nodes.filter(({ op }) => FUNCTIONS.has(op)).length;

/** What an element costs, in the time of reading one. */
export function costOf(program: Program): number {
  return program.buffers.length + 1 + COST_OF_FUNCTION * countFunctions(program);
}

function launchMap({ kernel, inputs, output, scalars, shape, strides }: Launch<"map">, execution: Execution): void {
  const { program, dtype } = kernel.spec;
  const bytes = byteSize(dtype);
  const length = shape.at(-1) as number;
  const rows = shape.slice(0, -1).reduce((product, size) => product * size, 1);
  if (rows * length === 0) return;
  const rank = rows === 1 ? 0 : shape.length - 1;
  const words = [execution.address(output), length, rank, ...shape.slice(0, rank)];
  for (const [i, slice] of inputs.entries()) {
    const steps = strides[i] as readonly number[];
    words.push(execution.address(slice), (steps.at(-1) as number) * bytes);
    for (let dimension = 0; dimension < rank; dimension++) words.push((steps[dimension] as number) * bytes);
  }
  const work = rows * length * costOf(program);
  const table = execution.table(words);
  if (rows === 1) execution.run("elements", { range: length, grain: GRAIN, work }, table, ...scalars);
  else execution.run("rows", { range: rows, grain: Math.ceil(GRAIN / length), work }, table, ...scalars);
}
