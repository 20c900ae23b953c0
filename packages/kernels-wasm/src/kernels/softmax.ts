/** Softmax and log-softmax of rows, and their gradients. */
import type { Spec } from "@opt/core/backend";
import { f64, type Local } from "../assembler";
import { emitFunction } from "../emit/functions";
import type { KernelSource, Target } from "../kernel";
import { emitRows, type Row } from "./row";
import { emitWeight } from "./weight";

/** What an element costs: an exponential. */
export const WEIGHT_WORK = 4;

/** The largest element of the row at `x`, and the sum of exp(x - largest): these weights are written to `to` if that is given. */
export function weigh(
  row: Row,
  target: Target,
  x: Local<"i32">,
  to?: Local<"i32">,
): { readonly largest: Local<"v128">; readonly sum: Local<"f64"> } {
  const { f, float } = row;
  const { vector, scalar, lanes } = float;
  const most = f.local("v128", vector.splat(scalar.const(Number.NEGATIVE_INFINITY)));
  // A NaN does not win, but its weight is one, and so is the sum.
  row.walk([x], ({ load }, at) => f.set(most, vector.pmax(most, load(at))));
  let max = vector.extractLane(most, 0);
  for (let lane = 1; lane < lanes; lane++) max = scalar.max(max, vector.extractLane(most, lane));
  const largest = f.local("v128", vector.splat(max));
  const weightOf = emitWeight(row, target);
  const sum = row.sum([x, to ?? x], ({ load, store }, at, put) => {
    const weight = f.local("v128", weightOf(vector.sub(load(at), largest)));
    if (to) store(put, weight);
    return weight;
  });
  return { largest, sum };
}

/** The logarithm of a sum, in all lanes. */
export function logarithm(row: Row, target: Target, sum: Local<"f64">): Local<"v128"> {
  const log = emitFunction(row.module, "log", row.float.type, target);
  return row.f.local("v128", log(row.f)(row.splat(sum)));
}

function emit({ log, dtype }: Spec<"softmax">, target: Target) {
  return emitRows(dtype, target, ["row", "row"], (row, x, y) => {
    const { mul, sub } = row.float.vector;
    const { largest, sum } = weigh(row, target, x, log ? undefined : y);
    if (log) {
      const logSum = logarithm(row, target, sum);
      row.walk([x, y], ({ load, store }, at, put) => store(put, sub(sub(load(at), largest), logSum)));
    } else {
      const share = row.splat(f64.div(f64.const(1), sum));
      row.walk([y], ({ load, store }, at) => store(at, mul(load(at), share)));
    }
  });
}

function emitGrad({ log, dtype }: Spec<"softmaxGrad">, target: Target) {
  return emitRows(dtype, target, ["row", "row", "row"], (row, y, g, out) => {
    const { mul, sub } = row.float.vector;
    const weightOf = log ? emitWeight(row, target) : undefined;
    const sum = row.sum([y, g], ({ load }, y, g) => (log ? load(g) : mul(load(g), load(y))));
    const total = row.splat(sum);
    row.walk([y, g, out], ({ load, store }, y, g, put) => {
      const [ofY, ofG] = [load(y), load(g)];
      store(put, weightOf ? sub(ofG, mul(weightOf(ofY), total)) : mul(ofY, sub(ofG, total)));
    });
  });
}

export const softmax: KernelSource<"softmax"> = {
  emit,
  launch({ input, output, rows, length }, execution) {
    execution.run("rows", { range: rows, work: rows * length * WEIGHT_WORK }, length, input, output);
  },
};

export const softmaxGrad: KernelSource<"softmaxGrad"> = {
  emit: emitGrad,
  launch({ forward, gradient, output, rows, length }, execution) {
    execution.run("rows", { range: rows, work: rows * length * WEIGHT_WORK }, length, forward, gradient, output);
  },
};
