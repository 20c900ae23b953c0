/** Layer normalisation of rows and its gradient. */
import type { Spec } from "@opt/core/backend";
import { f64, f64x2, i32, type Value } from "../assembler";
import type { KernelSource, Target } from "../kernel";
import { widen } from "./block";
import { floatOf } from "./float";
import { emitRows, type Row, WideSum, walkBlocks } from "./row";
import { narrowPairs, pairsOf, rowsOfChunk } from "./sum";

/** Vectors of columns that are added up together: a line of the cache. */
const COLUMNS = 4;
/** What an element costs. */
const WORK = 4;

const mean = ({ length }: Row, sum: Value<"f64">) => f64.div(sum, f64.convertI32U(length));

function emit({ dtype }: Spec<"layerNorm">, target: Target) {
  const operands = ["row", "i32", "i32", "row", "item", "item", "f64"] as const;
  return emitRows(dtype, target, operands, (row, x, weight, bias, y, means, rstds, eps) => {
    const { f, float } = row;
    const { add, extractLane, mul, sub } = float.vector;
    const middle = f.local(
      "f64",
      mean(
        row,
        row.sum([x], ({ load }, at) => load(at)),
      ),
    );
    const high = row.splat(middle);
    // Numbers far from 0 and close to each other: what the mean loses in the dtype would be theirs.
    const low = row.splat(f64.sub(middle, widen(float, extractLane(high, 0))));
    const centred = (at: Value<"v128">) => sub(sub(at, high), low);
    const squares = row.sum([x], ({ load }, at) => {
      const difference = f.local("v128", centred(load(at)));
      return mul(difference, difference);
    });
    const rstd = row.splat(f64.div(f64.const(1), f64.sqrt(f64.add(mean(row, squares), eps))));
    row.walk([x, weight, bias, y], ({ load, store }, at, w, b, put) => {
      store(put, add(mul(mul(centred(load(at)), rstd), load(w)), load(b)));
    });
    for (const [at, value] of [
      [means, high],
      [rstds, rstd],
    ] as const)
      f.do(float.lowest.store(at, value));
  });
}

/** With h = (x - mean) * rstd and d = g * weight: dx = rstd * (d - mean(d) - h * mean(d * h)), dweight = sum(g h), dbias = sum(g). */
function emitGrad({ dtype }: Spec<"layerNormGrad">, target: Target) {
  const float = floatOf(dtype);
  const { vector, bytes, lanes } = float;
  const operands = ["row", "i32", "item", "item", "row", "row"] as const;
  const module = emitRows(dtype, target, operands, (row, x, weight, means, rstds, g, dx) => {
    const { f } = row;
    const { loadSplat, mul, sub } = vector;
    const [middle, rstd] = [f.local("v128", loadSplat(means)), f.local("v128", loadSplat(rstds))];
    const sums = [new WideSum(f, float), new WideSum(f, float)] as const;
    const h = (x: Value<"v128">) => mul(sub(x, middle), rstd);
    row.walk([x, weight, g], ({ load, counted }, at, w, grad) => {
      const d = f.local("v128", counted(mul(load(grad), load(w))));
      sums[0].add(d);
      sums[1].add(mul(d, h(load(at))));
    });
    const [ofD, ofDH] = [row.splat(mean(row, sums[0].total())), row.splat(mean(row, sums[1].total()))];
    row.walk([x, weight, g, dx], ({ load, store }, at, w, grad, put) => {
      const d = mul(load(grad), load(w));
      store(put, mul(rstd, sub(sub(d, ofD), mul(h(load(at)), ofDH))));
    });
  });

  // Items are vectors of columns; the last one may be short.
  module.function(
    { parameters: ["i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32"], export: "parameters" },
    (f, start, end, input, means, rstds, gradient, weightGradient, biasGradient, rows, length, chunk) => {
      const first = f.local("i32", i32.mul(start, lanes));
      const last = f.least(i32.mul(end, lanes), length);
      const offset = i32.mul(first, bytes);
      const pointers = [input, gradient, weightGradient, biasGradient].map((base) => i32.add(base, offset));
      const stride = f.local("i32", i32.mul(length, bytes));
      walkBlocks(f, float, pointers, i32.sub(last, first), COLUMNS, (steps, x, g, dweight, dbias) => {
        const [at, grad, mean, rstd] = [x, g, means, rstds].map((pointer) => f.local("i32", pointer)) as [
          typeof x,
          typeof x,
          typeof x,
          typeof x,
        ];
        // For each vector of columns the sums of weight and bias, a pair at a time.
        const zero = f64x2.splat(f64.const(0));
        const sums = steps.map((step) => ({
          step,
          terms: [dweight, dbias].map((to) => ({
            to,
            pairs: Array.from({ length: lanes / 2 }, () => ({
              ofChunk: f.local("v128"),
              total: f.local("v128", zero),
            })),
          })),
        }));
        const pairs = sums.flatMap(({ terms }) => terms.flatMap((term) => term.pairs));
        const left = f.local("i32", rows);
        f.while(left, () => {
          const rest = f.least(left, chunk);
          f.decrease(left, rest);
          for (const { ofChunk } of pairs) f.set(ofChunk, zero);
          f.doWhile(() => {
            const [middle, scale] = [vector.loadSplat(mean), vector.loadSplat(rstd)].map((v) => f.local("v128", v));
            for (const { step, terms } of sums) {
              const gradient = step.load(grad);
              const h = vector.mul(vector.sub(step.load(at), middle!), scale!);
              for (const [k, term] of [f.local("v128", vector.mul(gradient, h)), gradient].entries()) {
                for (const [half, pair] of pairsOf(float, term).entries()) {
                  const { ofChunk } = terms[k]!.pairs[half]!;
                  f.set(ofChunk, f64x2.add(ofChunk, pair));
                }
              }
            }
            for (const pointer of [at, grad]) f.increase(pointer, stride);
            for (const pointer of [mean, rstd]) f.increase(pointer, bytes);
            f.decrease(rest, 1);
          }, rest);
          for (const { ofChunk, total } of pairs) f.set(total, f64x2.add(total, ofChunk));
        });
        for (const { step, terms } of sums) {
          for (const { to, pairs } of terms) {
            const [low, high] = pairs.map(({ total }) => total);
            step.store(to, high ? narrowPairs(low!, high) : low!);
          }
        }
      });
    },
  );
  return module;
}

export const layerNorm: KernelSource<"layerNorm"> = {
  emit,
  launch({ input, weight, bias, output, mean, rstd, rows, length, eps }, execution) {
    execution.run(
      "rows",
      { range: rows, work: rows * length * WORK },
      length,
      input,
      weight,
      bias,
      output,
      mean,
      rstd,
      eps,
    );
  },
};

export const layerNormGrad: KernelSource<"layerNormGrad"> = {
  emit: emitGrad,
  launch(launch, execution) {
    const { kernel, input, weight, mean, rstd, gradient, rows, length } = launch;
    execution.run(
      "rows",
      { range: rows, work: rows * length * WORK },
      length,
      input,
      weight,
      mean,
      rstd,
      gradient,
      launch.inputGradient,
    );
    const range = Math.ceil(length / floatOf(kernel.spec.dtype).lanes);
    const split = { range, grain: COLUMNS, work: WORK * rows * length };
    const { weightGradient, biasGradient } = launch;
    const sizes = [rows, length, rowsOfChunk(length)];
    execution.run("parameters", split, input, mean, rstd, gradient, weightGradient, biasGradient, ...sizes);
  },
};
