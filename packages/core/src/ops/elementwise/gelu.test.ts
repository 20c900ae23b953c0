// The gradient of gelu, which takes the distribution from the result, against its formula in float64.
import "@opt/testkit";
import { expect, it } from "vitest";
import { grad } from "../../autograd";
import { tensor } from "../../create";
import { erf } from "../../rule/erf";

const density = (x: number) => Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);
const slope = (x: number) => (1 + erf(x / Math.SQRT2)) / 2 + x * density(x);
const VALUES = [0, -0, 1e-45, -1e-40, 1e-31, -1e-29, 1e-3, -0.75, 0.5, -3, 5.5, -5.5, 40, -40, 1e30, Number.NaN];

it.each([
  ["f32", 2e-7],
  ["f64", 1e-15],
  ["f16", 1e-3],
] as const)("has the slope of the formula in %s, near 0 and far from it", (dtype, absolute) => {
  const x = tensor(VALUES, { dtype, requiresGrad: true });
  x.gelu().sum().backward();
  const values = x.detach().to("f64").tolist() as number[];
  const expected = values.map((value) => (Number.isFinite(value) ? slope(value) : Number.NaN));
  expect(x.grad!.dataSync()).toAgreeWith(expected, { absolute, relative: 0 });
});

it("bends at 0 as the formula does", () => {
  const x = tensor([0, 1e-4, -1e-4, 1], { requiresGrad: true });
  const [first] = grad(x.gelu().sum(), [x], { createGraph: true });
  const [second] = grad(first!.sum(), [x]);
  const expected = [0, 1e-4, -1e-4, 1].map((value) => density(value) * (2 - value * value));
  expect(second!.dataSync()).toAgreeWith(expected, { absolute: 3e-7, relative: 0 });
});
