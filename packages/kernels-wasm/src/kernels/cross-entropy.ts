/** Cross-entropy of logits with labels, row by row, and its gradient. */
import type { Spec } from "@opt/core/backend";
import { f64, i32, type Local, type Value } from "../assembler";
import type { KernelSource, Target } from "../kernel";
import { narrow, widen } from "./block";
import { emitRows, type Row } from "./row";
import { logarithm, WEIGHT_WORK, weigh } from "./softmax";

/** Calls `fill` with what an ignored label, or one out of range, gives; else `valid` with the byte offset of the label's element. */
function byLabel(
  { f, float, index, length }: Row,
  [labels, ignoreIndex]: readonly [Local<"i32">, Local<"i32">],
  fill: (value: Value) => void,
  valid: (offset: Value<"i32">) => void,
): void {
  const label = f.local("i32", i32.load(i32.add(labels, i32.mul(index, 4))));
  const put = (value: number) => fill(float.scalar.const(value));
  f.if(
    i32.eq(label, ignoreIndex),
    () => put(0),
    () =>
      f.if(
        i32.geU(label, length),
        () => put(Number.NaN),
        () => valid(i32.mul(label, float.bytes)),
      ),
  );
}

function emit({ dtype }: Spec<"crossEntropy">, target: Target) {
  return emitRows(dtype, target, ["row", "i32", "item", "i32"], (row, x, labels, output, ignoreIndex) => {
    const { f, float } = row;
    const { scalar, vector } = float;
    const put = (value: Value) => f.do(scalar.store(output, value as Value<"f32">));
    byLabel(row, [labels, ignoreIndex], put, (offset) => {
      const { largest, sum } = weigh(row, target, x);
      const logSum = vector.extractLane(logarithm(row, target, sum), 0);
      const distance = scalar.sub(vector.extractLane(largest, 0), scalar.load(i32.add(x, offset)));
      put(scalar.add(distance, logSum));
    });
  });
}

function emitGrad({ dtype }: Spec<"crossEntropyGrad">, target: Target) {
  const operands = ["row", "i32", "item", "row", "i32"] as const;
  return emitRows(dtype, target, operands, (row, x, labels, gradient, y, ignoreIndex) => {
    const { f, float } = row;
    const { scalar, vector } = float;
    const fill = (value: Value) => {
      const filling = f.local("v128", vector.splat(value as Value<"f32">));
      row.walk([y], ({ store }, put) => store(put, filling));
    };
    byLabel(row, [labels, ignoreIndex], fill, (offset) => {
      const atLabel = f.local("i32", i32.add(y, offset));
      const { sum } = weigh(row, target, x, y);
      const scale = f.local("f64", f64.div(widen(float, scalar.load(gradient)), sum));
      const factor = row.splat(scale);
      // weight / sum - 1, without what cancels.
      const rest = f64.sub(widen(float, scalar.load(atLabel)), sum);
      const ofLabel = f.local(float.type, narrow(float, f64.mul(rest, scale)));
      row.walk([y], ({ load, store }, at) => store(at, vector.mul(load(at), factor)));
      f.do(scalar.store(atLabel, ofLabel));
    });
  });
}

export const crossEntropy: KernelSource<"crossEntropy"> = {
  emit,
  launch({ logits, labels, output, rows, classes, ignoreIndex }, execution) {
    execution.run(
      "rows",
      { range: rows, work: rows * classes * WEIGHT_WORK },
      classes,
      logits,
      labels,
      output,
      ignoreIndex,
    );
  },
};

export const crossEntropyGrad: KernelSource<"crossEntropyGrad"> = {
  emit: emitGrad,
  launch({ logits, labels, gradient, output, rows, classes, ignoreIndex }, execution) {
    execution.run(
      "rows",
      { range: rows, work: rows * classes * WEIGHT_WORK },
      classes,
      logits,
      labels,
      gradient,
      output,
      ignoreIndex,
    );
  },
};
