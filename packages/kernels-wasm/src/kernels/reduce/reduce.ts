/** Sum, mean, maximum and its position over the middle axis of [outer, length, inner]. */
import { byteSize, type ComputeDType, type LaunchArguments, type Spec } from "@opt/core/backend";
import { f64, f64x2, i32, type Local, ModuleBuilder } from "../../assembler";
import type { Execution, KernelSource, Target } from "../../kernel";
import { type Float, floatOf, narrow, vectorOf, widen } from "../float";
import { type Step, walkBlocks } from "../row";
import { LargestLanes, largestOf } from "./largest";
import { emitSegments, runSegments } from "./segments";
import { CHUNK, rowsOfChunk, sumsOfColumns, sumsOfRow } from "./sum";

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
    emitColumns(module, float, op === "max");
  }
  return module;
}

/** inner = 1. The divisor is 1 for what is no mean. */
function emitRows(module: ModuleBuilder, float: Float, isMax: boolean): void {
  const { bytes, vector, scalar } = float;
  const foldOf = module.function({ parameters: ["i32", "i32"], result: "f64" }, (f, address, length) => {
    if (!isMax) return sumsOfRow(f, float, [address], length, 1, (step, at) => [step.pairs(at)])[0]!;
    const largest = largestOf(f, float, [address], length, (step, at) => step.load(at));
    return widen(float, vector.extractLane(largest, 0));
  });
  module.items("rows", ["i32", "i32", "i32", "f64"], (f, row, input, output, length, divisor) => {
    const total = foldOf(i32.add(input, i32.mul(i32.mul(row, length), bytes)), length);
    const to = i32.add(output, i32.mul(row, bytes));
    f.do(scalar.store(to, narrow(float, f64.div(total, divisor))));
  });
  emitSegments(module, float, foldOf, isMax ? "max" : "add");
}

/** Items are groups of COLUMNS columns: `perOuter` of them in each of the outer matrices. A chunk counts rows. */
export function emitColumns(module: ModuleBuilder, float: Float, isMax: boolean): void {
  const { bytes, lanes } = float;
  module.items(
    "columns",
    ["i32", "i32", "i32", "i32", "i32", "i32", "f64"],
    (f, item, input, output, length, inner, perOuter, chunk, divisor) => {
      const stride = f.local("i32", i32.mul(inner, bytes));
      const outer = f.local("i32", i32.divU(item, perOuter));
      const column = f.local("i32", i32.mul(i32.remU(item, perOuter), COLUMNS));
      const columns = f.least(i32.sub(inner, column), COLUMNS);
      const matrix = i32.mul(i32.mul(outer, length), inner);
      const from = i32.add(input, i32.mul(i32.add(matrix, column), bytes));
      const to = i32.add(output, i32.mul(i32.add(i32.mul(outer, inner), column), bytes));
      const ofSteps = (steps: readonly Step[], first: Local<"i32">, target: Local<"i32">) => {
        const at = f.local("i32", first);
        if (isMax) {
          const largest = steps.map(() => new LargestLanes(f, float));
          f.walk(f.local("i32", length), 1, [[at, stride]], () => {
            for (const [k, step] of steps.entries()) largest[k]!.add(step.load(at));
          });
          for (const [k, step] of steps.entries()) step.store(target, largest[k]!.value());
          return;
        }
        const perStep = lanes / 2;
        const totals = sumsOfColumns(f, length, chunk, steps.length * perStep, (add) => {
          for (const [k, step] of steps.entries()) {
            for (const [half, pair] of step.pairs(at).entries()) add(k * perStep + half, pair);
          }
          f.increase(at, stride);
        });
        const means = totals.map((total) => f64x2.div(total, f64x2.splat(divisor)));
        for (const step of steps) step.store(target, vectorOf(float, means.splice(0, perStep)));
      };
      walkBlocks(f, float, [from, to], columns, COLUMNS / lanes, ofSteps, { split: true });
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

export function runColumns(
  execution: Execution,
  op: "sum" | "mean" | "max",
  { input, output, outer, length, inner }: LaunchArguments["reduce"],
): void {
  const perOuter = Math.ceil(inner / COLUMNS);
  const split = { range: outer * perOuter, work: outer * length * inner };
  const divisor = op === "mean" ? length : 1;
  execution.run("columns", split, input, output, length, inner, perOuter, rowsOfChunk(inner), divisor);
}

export const reduce: KernelSource<"reduce"> = {
  emit,
  launch({ kernel, input, output, outer, length, inner }, execution: Execution) {
    if (outer * inner === 0) return;
    const { op, dtype } = kernel.spec;
    const work = outer * length * inner;
    const divisor = op === "mean" ? length : 1;
    if (op === "argmax") execution.run("argmax", { range: outer * inner, work }, input, output, length, inner);
    else if (inner > 1) runColumns(execution, op, { input, output, outer, length, inner });
    else if (outer < FEW_ROWS && length > CHUNK) {
      const ranges = Array.from({ length: outer }, (_, row) => {
        return [execution.address(input) + row * length * byteSize(dtype), length] as const;
      });
      runSegments(execution, ranges, byteSize(dtype), output, divisor);
    } else execution.run("rows", { range: outer, work }, input, output, length, divisor);
  },
};
