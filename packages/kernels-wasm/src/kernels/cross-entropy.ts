/** Cross-entropy of logits with labels, row by row, and its gradient. */
import type { Spec } from "@opt/core/backend";
import { type FunctionBuilder, i32, type Local, ModuleBuilder } from "../assembler";
import { emitFunction } from "../emit/functions";
import type { KernelSource, Target } from "../kernel";
import { floatOf } from "./float";
import { forRows, rowMaximum, splatOf, WideSum, walkRow } from "./row";

const EXP_WORK = 8;

/** Ignored label: `ignored()`; label out of range: `invalid()`; else `valid()`. */
function byLabel(
  f: FunctionBuilder,
  label: Local<"i32">,
  [classes, ignoreIndex]: readonly [Local<"i32">, Local<"i32">],
  [ignored, invalid, valid]: readonly [() => void, () => void, () => void],
): void {
  f.if(i32.eq(label, ignoreIndex), ignored, () => f.if(i32.geU(label, classes), invalid, valid));
}

function emit({ dtype }: Spec<"crossEntropy">, target: Target): ModuleBuilder {
  const float = floatOf(dtype);
  const { vector, scalar, bytes } = float;
  const module = new ModuleBuilder({ shared: target.shared });
  const exp = emitFunction(module, "exp", dtype);
  const log = emitFunction(module, "log", dtype);
  module.function(
    { parameters: ["i32", "i32", "i32", "i32", "i32", "i32", "i32"], export: "rows" },
    (f, start, end, logits, labels, output, classes, ignoreIndex) =>
      forRows(f, float, [start, end, classes], (offset, row) => {
        const x = f.local("i32", i32.add(logits, offset));
        const label = f.local("i32", i32.load(i32.add(labels, i32.mul(row, 4))));
        const put = (value: ReturnType<typeof scalar.const>) =>
          f.do(scalar.store(i32.add(output, i32.mul(row, bytes)), value));
        const valid = () => {
          const max = rowMaximum(f, float, x, classes);
          const sum = new WideSum(f, float);
          walkRow(f, float, [x], classes, ({ load, counted }, at) => {
            sum.add(counted(exp(f)(vector.sub(load(at), max))));
          });
          const logSum = vector.extractLane(log(f)(splatOf(f, float, sum.total())), 0);
          const atLabel = scalar.load(i32.add(x, i32.mul(label, bytes)));
          put(scalar.add(scalar.sub(vector.extractLane(max, 0), atLabel), logSum));
        };
        byLabel(
          f,
          label,
          [classes, ignoreIndex],
          [() => put(scalar.const(0)), () => put(scalar.const(Number.NaN)), valid],
        );
      }),
  );
  return module;
}

function emitGrad({ dtype }: Spec<"crossEntropyGrad">, target: Target): ModuleBuilder {
  const float = floatOf(dtype);
  const { vector, scalar, bytes } = float;
  const module = new ModuleBuilder({ shared: target.shared });
  const exp = emitFunction(module, "exp", dtype);
  module.function(
    { parameters: ["i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32"], export: "rows" },
    (f, start, end, logits, labels, gradient, output, classes, ignoreIndex) =>
      forRows(f, float, [start, end, classes], (offset, row) => {
        const x = f.local("i32", i32.add(logits, offset));
        const y = f.local("i32", i32.add(output, offset));
        const label = f.local("i32", i32.load(i32.add(labels, i32.mul(row, 4))));
        const fill = (value: number) => {
          const constant = vector.splat(scalar.const(value));
          walkRow(f, float, [y], classes, ({ store }, put) => store(put, constant));
        };
        const valid = () => {
          const max = rowMaximum(f, float, x, classes);
          const sum = new WideSum(f, float);
          walkRow(f, float, [x, y], classes, ({ load, store, counted }, at, put) => {
            const power = f.local("v128", exp(f)(vector.sub(load(at), max)));
            sum.add(counted(power));
            store(put, power);
          });
          const total = splatOf(f, float, sum.total());
          const g = f.local("v128", vector.loadSplat(i32.add(gradient, i32.mul(row, bytes))));
          const atLabel = f.local("i32", i32.add(y, i32.mul(label, bytes)));
          const probability = scalar.div(scalar.load(atLabel), vector.extractLane(total, 0));
          const ofLabel = f.local(
            float.type,
            scalar.mul(scalar.sub(probability, scalar.const(1)), vector.extractLane(g, 0)),
          );
          walkRow(f, float, [y], classes, ({ load, store }, put) => {
            store(put, vector.mul(vector.div(load(put), total), g));
          });
          f.do(scalar.store(atLabel, ofLabel));
        };
        byLabel(f, label, [classes, ignoreIndex], [() => fill(0), () => fill(Number.NaN), valid]);
      }),
  );
  return module;
}

export const crossEntropy: KernelSource<"crossEntropy"> = {
  emit,
  launch({ logits, labels, output, rows, classes, ignoreIndex }, execution) {
    const split = { range: rows, work: rows * classes * EXP_WORK };
    const addresses = [logits, labels, output].map((slice) => execution.address(slice));
    execution.run("rows", split, ...addresses, classes, ignoreIndex);
  },
};

export const crossEntropyGrad: KernelSource<"crossEntropyGrad"> = {
  emit: emitGrad,
  launch({ logits, labels, gradient, output, rows, classes, ignoreIndex }, execution) {
    const split = { range: rows, work: rows * classes * EXP_WORK };
    const addresses = [logits, labels, gradient, output].map((slice) => execution.address(slice));
    execution.run("rows", split, ...addresses, classes, ignoreIndex);
  },
};
