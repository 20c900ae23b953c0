import "@opt/testkit";
import { describe, expect, it } from "vitest";
import { layerNorm, layerNormGrad } from "./layer-norm";
import { input, output, runKernel, seeded } from "./run-kernel";

const SHAPES = [
  { rows: 1, length: 1 },
  { rows: 3, length: 5 },
  { rows: 17, length: 33 },
  { rows: 2, length: 1027 },
  { rows: 20_003, length: 4 },
  { rows: 0, length: 3 },
];

/** By the definition, in float64. */
function reference(x: ArrayLike<number>, w: ArrayLike<number>, b: ArrayLike<number>, g: ArrayLike<number>, n: number) {
  const rows = x.length / n;
  const result = { y: [] as number[], mean: [] as number[], rstd: [] as number[], dx: [] as number[] };
  const dweight = new Array<number>(n).fill(0);
  const dbias = new Array<number>(n).fill(0);
  for (let r = 0; r < rows; r++) {
    const row = Array.from({ length: n }, (_, i) => x[r * n + i]!);
    const average = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / n;
    const mean = average(row);
    const rstd = 1 / Math.sqrt(average(row.map((value) => (value - mean) ** 2)) + 1e-5);
    const h = row.map((value) => (value - mean) * rstd);
    const d = h.map((_, i) => g[r * n + i]! * w[i]!);
    const [meanD, meanDH] = [average(d), average(d.map((value, i) => value * h[i]!))];
    result.y.push(...h.map((value, i) => value * w[i]! + b[i]!));
    result.dx.push(...h.map((value, i) => rstd * (d[i]! - meanD - value * meanDH)));
    result.mean.push(mean);
    result.rstd.push(rstd);
    for (let i = 0; i < n; i++) {
      dweight[i]! += g[r * n + i]! * h[i]!;
      dbias[i]! += g[r * n + i]!;
    }
  }
  return { ...result, dweight, dbias };
}

const worst = (actual: ArrayLike<number>, expected: number[]) =>
  expected.reduce(
    (most, value, i) => {
      const error = Math.abs(actual[i]! - value) / Math.max(1, Math.abs(value));
      return Math.max(most, Number.isNaN(error) ? Infinity : error);
    },
    actual.length === expected.length ? 0 : Infinity,
  );

describe.each(["f32", "f64"] as const)("layer norm %s", (dtype) => {
  it.each(SHAPES)("of $rows x $length, and its gradients, on any number of threads", ({ rows, length }) => {
    const unit = dtype === "f32" ? 2 ** -24 : 2 ** -53;
    const x = seeded(rows * length, 1, dtype).map((value) => value * 3 + 2);
    const [weight, bias] = [seeded(length, 2, dtype), seeded(length, 3, dtype)];
    const gradient = seeded(rows * length, 4, dtype);
    const expected = reference(x, weight, bias, gradient, length);
    const parameters = { weight: input(dtype, weight), bias: input(dtype, bias), rows, length };
    const outputs = { output: output(dtype, x.length), mean: output(dtype, rows), rstd: output(dtype, rows) };
    const launch = { input: input(dtype, x), ...parameters, ...outputs, eps: 1e-5 };
    const forward = runKernel(layerNorm, { kind: "layerNorm", dtype }, launch);
    // A row of one element has the deviation sqrt(eps): rounding errors of x are 316 times as large in y.
    const scale = length === 1 ? 1000 : 30;
    expect(worst(forward.output!, expected.y)).toBeLessThan(scale * unit);
    expect(worst(forward.mean!, expected.mean)).toBeLessThan(2 * unit);
    expect(worst(forward.rstd!, expected.rstd)).toBeLessThan(8 * unit);

    const gradients = {
      inputGradient: output(dtype, x.length),
      weightGradient: output(dtype, length),
      biasGradient: output(dtype, length),
    };
    const kept = { mean: input(dtype, expected.mean), rstd: input(dtype, expected.rstd) };
    const { weight: w } = parameters;
    const backward = { input: input(dtype, x), weight: w, ...kept, gradient: input(dtype, gradient), ...gradients };
    const spec = { kind: "layerNormGrad", dtype } as const;
    const result = runKernel(layerNormGrad, spec, { ...backward, rows, length });
    expect(worst(result.inputGradient!, expected.dx)).toBeLessThan(scale * 10 * unit);
    expect(worst(result.weightGradient!, expected.dweight)).toBeLessThan(scale * 10 * unit);
    expect(worst(result.biasGradient!, expected.dbias)).toBeLessThan(50 * unit);
    const inParts = {
      ...runKernel(layerNormGrad, spec, { ...backward, rows, length }, { parts: 3 }),
      ...runKernel(layerNorm, { kind: "layerNorm", dtype }, launch, { parts: 3 }),
    };
    for (const [name, whole] of Object.entries({ ...result, ...forward })) expect(inParts[name]).toAgreeWith(whole!);
  });
});

it.each([1e3, 1e4, -1e5])("layer norm keeps the digits of float32 around %d", (middle) => {
  const [rows, length, dtype] = [5, 517, "f32"] as const;
  const x = seeded(rows * length, 6).map((value) => value + middle);
  const [weight, bias] = [seeded(length, 7), seeded(length, 8)];
  const expected = reference(x, weight, bias, x, length);
  const launch = { input: input(dtype, x), weight: input(dtype, weight), bias: input(dtype, bias), rows, length };
  const outputs = { output: output(dtype, x.length), mean: output(dtype, rows), rstd: output(dtype, rows) };
  const forward = runKernel(layerNorm, { kind: "layerNorm", dtype }, { ...launch, ...outputs, eps: 1e-5 });
  expect(worst(forward.output!, expected.y)).toBeLessThan(8 * 2 ** -24);
  expect(worst(forward.rstd!, expected.rstd)).toBeLessThan(8 * 2 ** -24);
});
