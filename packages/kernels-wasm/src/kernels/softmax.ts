/** Softmax and log-softmax of rows, and their gradients. */
import type { Spec } from "@opt/core/backend";
import { i32, ModuleBuilder } from "../assembler";
import { emitFunction } from "../emit/functions";
import type { KernelSource, Target } from "../kernel";
import { floatOf } from "./float";
import { forRows, rowMaximum, splatOf, WideSum, walkRow } from "./row";

/** An exponential costs about as much as this many additions. */
const EXP_WORK = 8;

function emit({ log, dtype }: Spec<"softmax">, target: Target): ModuleBuilder {
  const float = floatOf(dtype);
  const { vector } = float;
  const module = new ModuleBuilder({ shared: target.shared });
  const exp = emitFunction(module, "exp", dtype);
  const logarithm = log ? emitFunction(module, "log", dtype) : undefined;
  module.function(
    { parameters: ["i32", "i32", "i32", "i32", "i32"], export: "rows" },
    (f, start, end, input, output, length) =>
      forRows(f, float, [start, end, length], (offset) => {
        const x = f.local("i32", i32.add(input, offset));
        const y = f.local("i32", i32.add(output, offset));
        const max = rowMaximum(f, float, x, length);
        const sum = new WideSum(f, float);
        walkRow(f, float, [x, y], length, ({ load, store, counted }, at, put) => {
          const power = f.local("v128", exp(f)(vector.sub(load(at), max)));
          sum.add(counted(power));
          if (!log) store(put, power);
        });
        const total = splatOf(f, float, sum.total());
        if (logarithm !== undefined) f.set(total, logarithm(f)(total));
        walkRow(f, float, [x, y], length, ({ load, store }, at, put) => {
          store(put, log ? vector.sub(vector.sub(load(at), max), total) : vector.div(load(put), total));
        });
      }),
  );
  return module;
}

function emitGrad({ log, dtype }: Spec<"softmaxGrad">, target: Target): ModuleBuilder {
  const float = floatOf(dtype);
  const { vector } = float;
  const module = new ModuleBuilder({ shared: target.shared });
  const exp = log ? emitFunction(module, "exp", dtype) : undefined;
  module.function(
    { parameters: ["i32", "i32", "i32", "i32", "i32", "i32"], export: "rows" },
    (f, start, end, forward, gradient, output, length) =>
      forRows(f, float, [start, end, length], (offset) => {
        const rows = [forward, gradient, output].map((base) => f.local("i32", i32.add(base, offset)));
        const sum = new WideSum(f, float);
        walkRow(f, float, rows, length, ({ load, counted }, y, g) => {
          sum.add(counted(log ? load(g!) : vector.mul(load(g!), load(y!))));
        });
        const total = splatOf(f, float, sum.total());
        walkRow(f, float, rows, length, ({ load, store }, y, g, out) => {
          const result =
            exp === undefined
              ? vector.mul(load(y!), vector.sub(load(g!), total))
              : vector.sub(load(g!), vector.mul(exp(f)(load(y!)), total));
          store(out!, result);
        });
      }),
  );
  return module;
}

export const softmax: KernelSource<"softmax"> = {
  emit,
  launch({ input, output, rows, length }, execution) {
    const split = { range: rows, work: rows * length * EXP_WORK };
    execution.run("rows", split, execution.address(input), execution.address(output), length);
  },
};

export const softmaxGrad: KernelSource<"softmaxGrad"> = {
  emit: emitGrad,
  launch({ kernel, forward, gradient, output, rows, length }, execution) {
    const split = { range: rows, work: rows * length * (kernel.spec.log ? EXP_WORK : 2) };
    const addresses = [forward, gradient, output].map((slice) => execution.address(slice));
    execution.run("rows", split, ...addresses, length);
  },
};
