/** Layer normalisation of rows and its gradient. */
import type { Spec } from "@opt/core/backend";
import { f64, i32, ModuleBuilder } from "../assembler";
import type { KernelSource, Target } from "../kernel";
import { floatOf } from "./float";
import { forRows, splatOf, WideSum, walkRow } from "./row";

/** Rows added up in the dtype before their sums go to float64. */
const BLOCK_ROWS = 16;

function emit({ dtype }: Spec<"layerNorm">, { shared }: Target): ModuleBuilder {
  const float = floatOf(dtype);
  const { vector, scalar, bytes } = float;
  const module = new ModuleBuilder({ shared });
  module.function(
    { parameters: ["i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32", "f64"], export: "rows" },
    (f, start, end, input, weight, bias, output, means, rstds, length, eps) =>
      forRows(f, float, [start, end, length], (offset, row) => {
        const x = f.local("i32", i32.add(input, offset));
        const count = f64.convertI32U(length);
        const sum = new WideSum(f, float);
        walkRow(f, float, [x], length, ({ load, counted }, at) => sum.add(counted(load(at))));
        const mean = splatOf(f, float, f64.div(sum.total(), count));
        const squares = new WideSum(f, float);
        walkRow(f, float, [x], length, ({ load, counted }, at) => {
          const difference = f.local("v128", vector.sub(load(at), mean));
          squares.add(counted(vector.mul(difference, difference)));
        });
        const variance = f64.div(squares.total(), count);
        const rstd = splatOf(f, float, f64.div(f64.const(1), f64.sqrt(f64.add(variance, eps))));
        const y = i32.add(output, offset);
        walkRow(f, float, [x, weight, bias, y], length, ({ load, store }, at, w, b, put) => {
          const normal = vector.mul(vector.sub(load(at), mean), rstd);
          store(put!, vector.add(vector.mul(normal, load(w!)), load(b!)));
        });
        const rowBytes = i32.mul(row, bytes);
        f.do(scalar.store(i32.add(means, rowBytes), vector.extractLane(mean, 0)));
        f.do(scalar.store(i32.add(rstds, rowBytes), vector.extractLane(rstd, 0)));
      }),
  );
  return module;
}

/** With h = (x - mean) * rstd and d = g * weight: dx = rstd * (d - mean(d) - h * mean(d * h)), dweight = sum(g h), dbias = sum(g). */
function emitGrad({ dtype }: Spec<"layerNormGrad">, { shared }: Target): ModuleBuilder {
  const float = floatOf(dtype);
  const { vector, scalar, bytes, lanes } = float;
  const module = new ModuleBuilder({ shared });

  module.function(
    { parameters: ["i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32"], export: "input" },
    (f, start, end, input, weight, means, rstds, gradient, output, length) =>
      forRows(f, float, [start, end, length], (offset, row) => {
        const [x, g, dx] = [input, gradient, output].map((base) => i32.add(base, offset)) as [
          typeof input,
          typeof input,
          typeof input,
        ];
        const rowBytes = i32.mul(row, bytes);
        const mean = f.local("v128", vector.loadSplat(i32.add(means, rowBytes)));
        const rstd = f.local("v128", vector.loadSplat(i32.add(rstds, rowBytes)));
        const sumD = new WideSum(f, float);
        const sumDH = new WideSum(f, float);
        walkRow(f, float, [x, weight, g], length, ({ load, counted }, at, w, grad) => {
          const d = f.local("v128", counted(vector.mul(load(grad!), load(w!))));
          sumD.add(d);
          sumDH.add(vector.mul(d, vector.mul(vector.sub(load(at), mean), rstd)));
        });
        const count = f64.convertI32U(length);
        const meanD = splatOf(f, float, f64.div(sumD.total(), count));
        const meanDH = splatOf(f, float, f64.div(sumDH.total(), count));
        walkRow(f, float, [x, weight, g, dx], length, ({ load, store }, at, w, grad, put) => {
          const h = vector.mul(vector.sub(load(at), mean), rstd);
          const d = vector.mul(load(grad!), load(w!));
          store(put!, vector.mul(rstd, vector.sub(vector.sub(d, meanD), vector.mul(h, meanDH))));
        });
      }),
  );

  // Items are vectors of columns; the last one may be short.
  module.function(
    { parameters: ["i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32"], export: "parameters" },
    (f, start, end, input, means, rstds, gradient, weightGradient, biasGradient, rows, length) => {
      const first = f.local("i32", i32.mul(start, lanes));
      const last = f.least(i32.mul(end, lanes), length);
      const offset = i32.mul(first, bytes);
      const pointers = [input, gradient, weightGradient, biasGradient].map((base) => i32.add(base, offset));
      const stride = f.local("i32", i32.mul(length, bytes));
      walkRow(f, float, pointers, i32.sub(last, first), ({ load, store }, x, g, dweight, dbias) => {
        const [at, grad] = [f.local("i32", x), f.local("i32", g!)];
        const [mean, rstd] = [f.local("i32", means), f.local("i32", rstds)];
        const totals = [new WideSum(f, float), new WideSum(f, float)] as const;
        const left = f.local("i32", rows);
        f.while(left, () => {
          const block = f.least(left, BLOCK_ROWS);
          f.decrease(left, block);
          const zero = vector.splat(scalar.const(0));
          const [sumGH, sumG] = [f.local("v128", zero), f.local("v128", zero)];
          f.doWhile(() => {
            const gradients = load(grad);
            const h = vector.mul(vector.sub(load(at), vector.loadSplat(mean)), vector.loadSplat(rstd));
            f.set(sumGH, vector.add(sumGH, vector.mul(gradients, h)));
            f.set(sumG, vector.add(sumG, gradients));
            for (const pointer of [at, grad]) f.increase(pointer, stride);
            for (const pointer of [mean, rstd]) f.increase(pointer, bytes);
            f.decrease(block, 1);
          }, block);
          totals[0].add(sumGH);
          totals[1].add(sumG);
        });
        store(dweight!, totals[0].lanes());
        store(dbias!, totals[1].lanes());
      });
    },
  );
  return module;
}

export const layerNorm: KernelSource<"layerNorm"> = {
  emit,
  launch({ input, weight, bias, output, mean, rstd, rows, length, eps }, execution) {
    const addresses = [input, weight, bias, output, mean, rstd].map((slice) => execution.address(slice));
    execution.run("rows", { range: rows, work: 4 * rows * length }, ...addresses, length, eps);
  },
};

export const layerNormGrad: KernelSource<"layerNormGrad"> = {
  emit: emitGrad,
  launch(launch, execution) {
    const { kernel, rows, length } = launch;
    const [input, weight, mean, rstd, gradient] = [
      launch.input,
      launch.weight,
      launch.mean,
      launch.rstd,
      launch.gradient,
    ].map((slice) => execution.address(slice)) as [number, number, number, number, number];
    const [dx, dweight, dbias] = [launch.inputGradient, launch.weightGradient, launch.biasGradient].map((slice) =>
      execution.address(slice),
    ) as [number, number, number];
    const work = 4 * rows * length;
    execution.run("input", { range: rows, work }, input, weight, mean, rstd, gradient, dx, length);
    const range = Math.ceil(length / floatOf(kernel.spec.dtype).lanes);
    execution.run("parameters", { range, grain: 4, work }, input, mean, rstd, gradient, dweight, dbias, rows, length);
  },
};
