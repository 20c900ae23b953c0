/** Sum, mean, maximum and its position over the middle axis of [outer, length, inner]. */
import { byteSize, type ComputeDType, type Spec } from "@opt/core/backend";
import { type Callable, f32x4, f64, f64x2, i32, ModuleBuilder, type Operand, v128 } from "../assembler";
import { accessTo } from "../emit/stored";
import type { Execution, KernelSource, Target } from "../kernel";
import { emitFold, narrow } from "./block";
import { type Float, floatOf } from "./float";
import { emitSegments, runSegments } from "./segments";
import { CHUNK, emitSum, readerOf, rowsOfChunk } from "./sum";

/** Long rows, when there are few of them, are shared out in segments. */
const FEW_ROWS = 16;
/** Columns reduced side by side. */
const COLUMNS = 16;

function emit({ op, dtype }: Spec<"reduce">, target: Target): ModuleBuilder {
  const float = floatOf(dtype as ComputeDType);
  const module = new ModuleBuilder(target);
  if (op === "argmax") emitArgmax(module, float);
  else {
    emitRows(module, float, op === "max");
    emitColumns(module, float, op === "max" ? emitMaxima : emitSums);
  }
  return module;
}

/** inner = 1. The divisor is 1 for what is no mean. */
function emitRows(module: ModuleBuilder, float: Float, isMax: boolean): void {
  const { bytes } = float;
  // Zeros are met in any order: the largest is 0, never -0.
  const max = isMax ? emitFold(module, float, "max") : undefined;
  const foldOf = max
    ? (address: Operand<"i32">, length: Operand<"i32">) => f64.add(max(address, length), 0)
    : emitSum(module, float.type, (x) => x);
  module.items("rows", ["i32", "i32", "i32", "f64"], (f, row, input, output, length, divisor) => {
    const total = foldOf(i32.add(input, i32.mul(i32.mul(row, length), bytes)), length);
    const to = i32.add(output, i32.mul(row, bytes));
    f.do(float.scalar.store(to, narrow(float, f64.div(total, divisor))));
  });
  emitSegments(module, float, foldOf, isMax ? "max" : "add");
}

/** (input, stride, length, chunk, output, divisor): reduces so many columns. A chunk counts rows. */
type ColumnsFunction = Callable<readonly ["i32", "i32", "i32", "i32", "i32", "f64"], "none">;
const COLUMN_PARAMETERS = ["i32", "i32", "i32", "i32", "i32", "f64"] as const;

function emitSums(module: ModuleBuilder, float: Float, columns: number): ColumnsFunction {
  const { bytes, lowest, type } = float;
  return module.function({ parameters: COLUMN_PARAMETERS }, (f, input, stride, length, chunk, output, divisor) => {
    const { one, two } = readerOf(f, type);
    const read = columns === 1 ? one : two;
    const zero = f64x2.splat(f64.const(0));
    const sums = Array.from({ length: Math.ceil(columns / 2) }, () => ({
      ofChunk: f.local("v128"),
      total: f.local("v128", zero),
    }));
    f.while(length, () => {
      const rows = f.least(length, chunk);
      f.decrease(length, rows);
      for (const { ofChunk } of sums) f.set(ofChunk, zero);
      f.doWhile(() => {
        for (const [pair, { ofChunk }] of sums.entries()) {
          f.set(ofChunk, f64x2.add(ofChunk, read(input, 2 * pair * bytes)));
        }
        f.increase(input, stride);
        f.decrease(rows, 1);
      }, rows);
      for (const { ofChunk, total } of sums) f.set(total, f64x2.add(total, ofChunk));
    });
    for (const [pair, { total }] of sums.entries()) {
      const mean = f64x2.div(total, f64x2.splat(divisor));
      const narrowed = type === "f32" ? f32x4.demoteF64x2Zero(mean) : mean;
      const to = i32.add(output, 2 * pair * bytes);
      if (columns === 1) f.do(lowest.store(to, narrowed));
      else f.do(type === "f32" ? v128.store64Lane(to, narrowed, 0) : v128.store(to, narrowed));
    }
  });
}

function emitMaxima(module: ModuleBuilder, float: Float, columns: number): ColumnsFunction {
  const { lanes, lowest, scalar, vector } = float;
  return module.function({ parameters: COLUMN_PARAMETERS }, (f, input, stride, length, _chunk, output) => {
    const { loadOne } = accessTo(f, float.type);
    const least = vector.splat(scalar.const(Number.NEGATIVE_INFINITY));
    const maxima = Array.from({ length: Math.ceil(columns / lanes) }, () => f.local("v128", least));
    f.while(length, () => {
      maxima.forEach((max, v) => {
        f.set(max, vector.max(max, columns === 1 ? loadOne(input) : v128.load(input, 16 * v)));
      });
      f.increase(input, stride);
      f.decrease(length, 1);
    });
    maxima.forEach((max, v) => {
      const positive = vector.add(max, vector.splat(scalar.const(0)));
      f.do(columns === 1 ? lowest.store(output, positive) : v128.store(output, positive, 16 * v));
    });
  });
}

/** Items are groups of COLUMNS columns: `perOuter` of them in each of the outer matrices. */
function emitColumns(module: ModuleBuilder, float: Float, emitOf: typeof emitSums): void {
  const { bytes } = float;
  const parts = [COLUMNS, 4, 1].map((columns) => [columns, emitOf(module, float, columns)] as const);
  module.items(
    "columns",
    ["i32", "i32", "i32", "i32", "i32", "i32", "f64"],
    (f, item, input, output, length, inner, perOuter, chunk, divisor) => {
      const stride = f.local("i32", i32.mul(inner, bytes));
      const outer = f.local("i32", i32.divU(item, perOuter));
      const column = f.local("i32", i32.mul(i32.remU(item, perOuter), COLUMNS));
      const left = f.least(i32.sub(inner, column), COLUMNS);
      const matrix = i32.mul(i32.mul(outer, length), inner);
      const from = f.local("i32", i32.add(input, i32.mul(i32.add(matrix, column), bytes)));
      const to = f.local("i32", i32.add(output, i32.mul(i32.add(i32.mul(outer, inner), column), bytes)));
      for (const [columns, reduceColumns] of parts) {
        const steps = [from, to].map((pointer) => [pointer, columns * bytes] as const);
        f.walk(left, columns, steps, () => f.do(reduceColumns(from, stride, length, chunk, to, divisor)));
      }
    },
  );
}

/** The first of the largest, or the first NaN. */
function emitArgmax(module: ModuleBuilder, float: Float): void {
  const { bytes, scalar } = float;
  module.items("argmax", ["i32", "i32", "i32", "i32"], (f, item, input, output, length, inner) => {
    const i = f.local("i32");
    const stride = f.local("i32", i32.mul(inner, bytes));
    const outer = i32.divU(item, inner);
    const first = i32.add(i32.mul(i32.mul(outer, length), inner), i32.remU(item, inner));
    const at = f.local("i32", i32.add(input, i32.mul(first, bytes)));
    const best = f.local("i32", 0);
    const largest = f.local(float.type, scalar.load(at));
    f.set(i, 1);
    f.while(i32.and(i32.ltU(i, length), scalar.eq(largest, largest)), () => {
      f.increase(at, stride);
      const x = f.local(float.type, scalar.load(at));
      f.if(i32.or(scalar.gt(x, largest), scalar.ne(x, x)), () => {
        f.set(largest, x);
        f.set(best, i);
      });
      f.increase(i, 1);
    });
    f.do(i32.store(i32.add(output, i32.mul(item, 4)), best));
  });
}

export const reduce: KernelSource<"reduce"> = {
  emit,
  launch({ kernel, input, output, outer, length, inner }, execution: Execution) {
    if (outer * inner === 0) return;
    const { op, dtype } = kernel.spec;
    const work = outer * length * inner;
    const divisor = op === "mean" ? length : 1;
    if (op === "argmax") execution.run("argmax", { range: outer * inner, work }, input, output, length, inner);
    else if (inner > 1) {
      const perOuter = Math.ceil(inner / COLUMNS);
      const split = { range: outer * perOuter, work };
      execution.run("columns", split, input, output, length, inner, perOuter, rowsOfChunk(inner), divisor);
    } else if (outer < FEW_ROWS && length > CHUNK) {
      const ranges = Array.from({ length: outer }, (_, row) => {
        return [execution.address(input) + row * length * byteSize(dtype), length] as const;
      });
      runSegments(execution, ranges, byteSize(dtype), output, divisor);
    } else execution.run("rows", { range: outer, work }, input, output, length, divisor);
  },
};
