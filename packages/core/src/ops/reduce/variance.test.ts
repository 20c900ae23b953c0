import { expect, test } from "vitest";
import { tensor } from "../../create";
import type { Tensor } from "../../tensor/tensor";
import { std, variance } from "./variance";

const spread = [0.26111650466918945, -0.4351941645145416, 0.26111650466918945, -0.08703883737325668];

/** PyTorch 2.13's, in which squares are added up in float64. */
test.each<[string, (x: Tensor) => Tensor, number[], number, number[]]>([
  ["std of 1e30", std, [1e30, -1e30, 1e30, 0], 9.574270878468272e29, spread],
  ["std of 1e-30", std, [1e-30, -1e-30, 1e-30, 0], 9.57427077247572e-31, spread],
  ["variance beyond float32", variance, [1e30, -1e30], Number.POSITIVE_INFINITY, [2e30, -2e30]],
])("%s", (_, run, values, expected, gradient) => {
  const x = tensor(values, { requiresGrad: true });
  const y = run(x);
  y.backward();
  const near = (a: number, b: number) => expect(a / b - 1 || 0).toBeCloseTo(0, 5);
  near(y.dataSync()[0]!, expected);
  for (const [i, g] of x.grad!.dataSync().entries()) near(g, gradient[i]!);
});

test("the variance of integers counts units that float32 does not see", () => {
  expect([...variance(tensor(Int32Array.of(2147483647, 2147483645))).dataSync()]).toEqual([2]);
});

// PyTorch 2.13's, for correction 0, 1, 2 and 3.
test.each<[number[], number[]]>([
  [
    [1, 3],
    [1, 2, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
  ],
  [[5], [0, Number.NaN, Number.NaN, Number.NaN]],
])("the variance of %j with corrections up to more than there are", (values, expected) => {
  const of = (spread: typeof variance) =>
    expected.map((_, correction) => spread(tensor(values), undefined, { correction }).dataSync()[0]!);
  expect(of(variance)).toEqual(expected);
  expect(of(std)).toEqual(expected.map((each) => Math.fround(Math.sqrt(each))));
});
