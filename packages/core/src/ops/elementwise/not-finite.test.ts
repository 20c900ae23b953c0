// Where something is not finite: PyTorch 2.13's.
import { expectCode } from "@opt/testkit";
import { expect, test } from "vitest";
import { tensor } from "../../create";
import type { Tensor } from "../../tensor/tensor";
import { softshrink } from "./further-activations";

const [nan, inf] = [Number.NaN, Number.POSITIVE_INFINITY];

test.each<[string, number[], (x: Tensor) => Tensor, number[]]>([
  ["relu lets NaN through", [nan, -1, 0, 2, inf], (x) => x.relu(), [1, 0, 0, 1, 1]],
  ["maximum of NaN gives its operands all", [nan, 1, 2, 3], (x) => x.maximum(tensor([1, nan, 2, 4])), [1, 1, 0.5, 0]],
  ["minimum of NaN gives its operands all", [nan, 1, 2, 3], (x) => x.minimum(tensor([1, nan, 2, 4])), [1, 1, 0.5, 1]],
  ["|x| of NaN and of 0 has none", [nan, 0, -0, -inf], (x) => x.abs(), [0, 0, 0, -1]],
  ["|x| of 0 keeps a NaN that comes", [0, 2], (x) => x.abs().mul(nan), [nan, nan]],
  ["softshrink, 0 at its bounds", [nan, -2, -0.5, 0.25, 0.5, inf], (x) => softshrink(x), [1, 1, 0, 0, 0, 1]],
  ["softshrink keeps no NaN that comes to 0", [0.25, 2], (x) => softshrink(x).mul(nan), [0, nan]],
  ["x ** NaN", [2, 1], (x) => x.pow(tensor([nan, 0])), [nan, 0]],
])("%s", (_, values, run, expected) => {
  const x = tensor(values, { requiresGrad: true });
  run(x).sum().backward();
  expect([...x.grad!.dataSync()].map((g) => g + 0)).toEqual(expected);
});

test("NaN ** b has the gradient NaN for every b, 0 ** b has 0", () => {
  const b = tensor([0, 1, 2, 2], { requiresGrad: true });
  tensor([nan, nan, nan, 0]).pow(b).sum().backward();
  expect([...b.grad!.dataSync()]).toEqual([nan, nan, nan, 0]);
});

test("softshrink moves towards 0 by lambd, from 0 on", () => {
  const moved = (lambd?: number) => [...softshrink(tensor([-inf, -2, 0.25, 0.5, 2, nan]), lambd).dataSync()];
  expect(moved()).toEqual([-inf, -1.5, 0, 0, 1.5, nan]);
  expect(moved(0)).toEqual([-inf, -2, 0.25, 0.5, 2, nan]);
  expectCode("BAD_ARGUMENT", () => moved(-1));
});
