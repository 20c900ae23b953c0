/** Sum, mean, maximum and its position over the middle axis of [outer, length, inner]. */
import { byteSize, type ComputeDType, type Spec } from "@opt/core/backend";
import { f64, f64x2, i32, ModuleBuilder, shuffle32, v128 } from "../assembler";
import type { Execution, KernelSource, Target } from "../kernel";
import { accumulate, combine, emitFold, type Fold, identityOf, narrow, widen } from "./block";
import { type Float, floatOf } from "./float";
import { emitSegments, runSegments, SEGMENT } from "./segments";

/** Long rows, when there are few of them, are shared out in segments. */
const FEW_ROWS = 16;
/** Columns reduced side by side, in vectors; and rows added up in the dtype before they go to float64. */
const COLUMN_VECTORS = 4;
const COLUMN_BLOCK = 16;

function emit({ op, dtype }: Spec<"reduce">, target: Target): ModuleBuilder {
  const float = floatOf(dtype as ComputeDType);
  const module = new ModuleBuilder(target);
  if (op === "argmax") emitArgmax(module, float);
  else {
    emitRows(module, float, op === "max" ? "max" : "sum");
    emitColumns(module, float, op === "max" ? "max" : "sum");
  }
  return module;
}

/** inner = 1. The divisor is 1 for what is no mean. */
function emitRows(module: ModuleBuilder, float: Float, fold: Fold): void {
  const { bytes } = float;
  const foldOf = emitFold(module, float, fold);

  module.items("rows", ["i32", "i32", "i32", "f64"], (f, row, input, output, length, divisor) => {
    const total = foldOf(i32.add(input, i32.mul(i32.mul(row, length), bytes)), length);
    const to = i32.add(output, i32.mul(row, bytes));
    f.do(float.scalar.store(to, narrow(float, f64.div(total, divisor))));
  });
  emitSegments(module, float, fold, foldOf);
}

/** Items are groups of COLUMN_VECTORS vectors of columns: `perOuter` of them in each of the outer matrices. */
function emitColumns(module: ModuleBuilder, float: Float, fold: Fold): void {
  const { bytes, lanes, scalar, vector } = float;
  const add = accumulate(float, fold);
  const combineVectors = fold === "max" ? f64x2.max : f64x2.add;

  /** Reduces `vectors` vectors of columns. */
  const emitVectors = (vectors: number) =>
    module.function(
      { parameters: ["i32", "i32", "i32", "i32", "f64"] },
      (f, input, stride, length, output, divisor) => {
        const identity = f.local("v128", vector.splat(scalar.const(identityOf(fold))));
        const sums = Array.from({ length: vectors }, () => f.local("v128"));
        const halves = Math.max(1, lanes / 2);
        const totals = sums.map(() =>
          Array.from({ length: halves }, () => f.local("v128", f64x2.splat(f64.const(identityOf(fold))))),
        );
        const x = f.local("v128");
        f.while(length, () => {
          const rows = f.least(length, COLUMN_BLOCK);
          f.decrease(length, rows);
          for (const sum of sums) f.set(sum, identity);
          f.doWhile(() => {
            sums.forEach((sum, v) => {
              f.set(x, v128.load(input, 16 * v));
              f.set(sum, add.vector(sum, x));
            });
            f.increase(input, stride);
            f.decrease(rows, 1);
          }, rows);
          sums.forEach((sum, v) => {
            totals[v]!.forEach((total, half) => {
              const ofHalf = half === 0 ? sum : shuffle32(sum, sum, [2, 3, 2, 3]);
              f.set(total, combineVectors(total, float.type === "f32" ? f64x2.promoteLowF32x4(ofHalf) : ofHalf));
            });
          });
        });
        totals.flat().forEach((total, pair) => {
          for (const lane of [0, 1]) {
            const mean = f64.div(f64x2.extractLane(total, lane), divisor);
            f.do(scalar.store(output, narrow(float, mean), (2 * pair + lane) * bytes));
          }
        });
      },
    );
  const wide = emitVectors(COLUMN_VECTORS);
  const single = emitVectors(1);

  module.items(
    "columns",
    ["i32", "i32", "i32", "i32", "i32", "f64"],
    (f, item, input, output, length, inner, perOuter, divisor) => {
      const row = f.local("i32");
      const stride = f.local("i32", i32.mul(inner, bytes));
      const outer = f.local("i32", i32.divU(item, perOuter));
      const column = f.local("i32", i32.mul(i32.remU(item, perOuter), COLUMN_VECTORS * lanes));
      const left = f.least(i32.sub(inner, column), COLUMN_VECTORS * lanes);
      const matrix = i32.mul(i32.mul(outer, length), inner);
      const from = f.local("i32", i32.add(input, i32.mul(i32.add(matrix, column), bytes)));
      const to = f.local("i32", i32.add(output, i32.mul(i32.add(i32.mul(outer, inner), column), bytes)));
      const advance = (columns: number) => {
        f.increase(from, columns * bytes);
        f.increase(to, columns * bytes);
        f.decrease(left, columns);
      };
      f.if(i32.eq(left, COLUMN_VECTORS * lanes), () => {
        f.do(wide(from, stride, length, to, divisor));
        f.set(left, 0);
      });
      f.while(i32.geU(left, lanes), () => {
        f.do(single(from, stride, length, to, divisor));
        advance(lanes);
      });
      f.while(left, () => {
        const total = f.local("f64", identityOf(fold));
        const at = f.local("i32", from);
        f.for(row, 0, length, 1, () => {
          f.set(total, combine(fold, total, widen(float, scalar.load(at))));
          f.increase(at, stride);
        });
        f.do(scalar.store(to, narrow(float, f64.div(total, divisor))));
        advance(1);
      });
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
      const perOuter = Math.ceil(inner / (COLUMN_VECTORS * floatOf(dtype as ComputeDType).lanes));
      execution.run("columns", { range: outer * perOuter, work }, input, output, length, inner, perOuter, divisor);
    } else if (outer < FEW_ROWS && length > SEGMENT) {
      const ranges = Array.from({ length: outer }, (_, row) => {
        return [execution.address(input) + row * length * byteSize(dtype), length] as const;
      });
      runSegments(execution, ranges, byteSize(dtype), output, divisor);
    } else execution.run("rows", { range: outer, work }, input, output, length, divisor);
  },
};
