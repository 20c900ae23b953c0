import "@opt/testkit";
import { describe, expect, it } from "vitest";
import { grad } from "../../autograd";
import { parameter } from "../../create";
import type { Tensor } from "../../tensor/tensor";
import { elu, gelu, hardtanh, logaddexp, logsigmoid, mish, relu6, selu, silu, softplus } from "../index";

const run = (f: (x: Tensor) => Tensor, values: number[], dtype: "f32" | "f64") => {
  const x = parameter(values, { dtype });
  const [slope] = grad(f(x).sum(), [x], { createGraph: true }) as [Tensor];
  return [slope, grad(slope.sum(), [x])[0]!].map((g) => [...g.dataSync()]);
};

/** Second gradients of PyTorch 2.13 at 1 and -3. Far away all are 0. */
const FUNCTIONS: [string, (x: Tensor) => Tensor, number, number][] = [
  ["silu", silu, 0.302366119, -0.0323214045],
  ["softplus", softplus, 0.196611933, 0.0451766597],
  ["softplus with beta 2", (x) => softplus(x, 2), 0.209987171, 0.00493301858],
  ["softplus without a threshold", (x) => softplus(x, 1, Infinity), 0.196611933, 0.0451766597],
  ["mish", mish, 0.184685764, -0.0399287132],
  ["logsigmoid", logsigmoid, -0.196611933, -0.0451766597],
  ["gelu", gelu, 0.241970725, -0.0310229389],
  ["elu", elu, 0, 0.0497870684],
  ["selu", selu, 0, 0.0875306121],
  ["logaddexp with 0", (x) => logaddexp(x, 0), 0.196611933, 0.0451766597],
  ["logaddexp after 0", (x) => logaddexp(0, x), 0.196611933, 0.0451766597],
];

describe("the gradient of the gradient", () => {
  it.each(FUNCTIONS)("of %s is a number far away", (_, f, atOne, atLess) => {
    const far = [16, 20, 40, 89, 110, 500, 800, 1e6];
    const places = [1, -3, ...far, ...far.map((x) => -x)];
    for (const dtype of ["f32", "f64"] as const) {
      const [, curve] = run(f, places, dtype) as [number[], number[]];
      expect(curve.slice(0, 2)).toAgreeWith([atOne, atLess], { absolute: 1e-6, relative: 1e-6 });
      for (const c of curve.slice(2)) expect(Math.abs(c)).toBeLessThan(1e-5);
    }
  });

  it.each([
    ["elu", elu, 1],
    ["selu", selu, 1.7580993],
  ] as const)("of %s is 0 at 0", (_, f, slope) => {
    const [first, second] = run(f, [0, Number.NaN], "f32") as [number[], number[]];
    expect(first[0]).toBeCloseTo(slope, 6);
    expect(second[0]).toBe(0);
    expect(first[1]).toBeNaN();
  });
});

it.each([
  ["relu6", relu6],
  ["hardtanh", hardtanh],
] as const)("%s hands the gradient on where x is NaN, not at its bounds", (_, f) => {
  const x = parameter([Number.NaN, 0.5, -1, 6]);
  expect([...grad(f(x).sum(), [x])[0]!.dataSync()]).toEqual([1, 1, 0, 0]);
});
