// Every op's gradient against finite differences in float64.
import { DIFFERENTIABLE_OPS, gradCheck, inputsOf } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { parameter, tensor } from "../create";
import { less, maximum, where } from "../functions";
import * as ops from "./index";

describe("the gradient of", () => {
  it.each(DIFFERENTIABLE_OPS)("$name", async (op) => {
    const inputs = inputsOf(op).map(({ values, shape }) => tensor(values, { shape }));
    await gradCheck(op.run, inputs);
  });
});

/** Parts of others, and what has no gradient: they have no definition. */
const NOT_LISTED = `addInto applyRule applyRuleInPlace binaryCrossEntropyTerms cast checkAnyTensor checkTensor chosen reduceInto copyInto elementwise
  fill fillInPlace logAddExp3 maskedSelect move needing nonzero overwrite owned resample softmaxOf withFlatGradient withGradient
  angle complex complexAbs complexEinsum complexMul conj fft fft2 fftn ifft ifft2 ifftn imag irfft irfft2 polar real rfft rfft2`;

it("every op with a gradient has a case", () => {
  const listed = new Set(DIFFERENTIABLE_OPS.map(({ name }) => /\w+/.exec(name)![0]));
  const others = Object.entries(ops).filter(([name, op]) => !listed.has(name) && !("definition" in op));
  expect(others.map(([name]) => name).sort()).toEqual(NOT_LISTED.split(/\s+/).sort());
});

describe("the gradient is PyTorch's", () => {
  it("half to each of equals, of max, min, maximum and minimum", () => {
    for (const op of ["maximum", "minimum"] as const) {
      const [a, b] = [parameter([1, 2]), parameter([1, 3])];
      a[op](b).sum().backward();
      expect([a.grad!.dataSync()[0], b.grad!.dataSync()[0]]).toEqual([0.5, 0.5]);
    }
  });

  it("shared by equal largest values of max over an axis", () => {
    const x = parameter([
      [3, 3, 1],
      [2, 5, 5],
    ]);
    x.max(1).sum().backward();
    expect([...x.grad!.dataSync()]).toEqual([0.5, 0.5, 0, 0, 0.5, 0.5]);
  });

  it.each<[string, (x: ReturnType<typeof parameter>) => ReturnType<typeof parameter>, number]>([
    ["abs at 0", (x) => x.abs(), 0],
    ["relu at 0", (x) => x.relu(), 0],
    ["pow(x, 2) at 0", (x) => x.pow(2), 0],
    ["pow(x, 1) at 0", (x) => x.pow(1), 1],
    ["pow(x, 0) at 0", (x) => x.pow(0), 0],
    ["sqrt at 0", (x) => x.sqrt(), Number.POSITIVE_INFINITY],
    ["log at 0", (x) => x.log(), Number.POSITIVE_INFINITY],
    ["maximum with 0 at 0", (x) => maximum(x, 0), 0.5],
  ])("%s", (_, run, expected) => {
    const x = parameter(0);
    run(x).backward();
    expect(x.grad!.dataSync()[0]).toBe(expected);
  });
});

it("a comparison has no gradient, and select sends none to its condition", () => {
  const x = parameter([-1, 2]);
  const condition = less(x, 0);
  expect([condition.dtype, condition.requiresGrad]).toEqual(["bool", false]);
  where(condition, x.mul(3), x).sum().backward();
  expect([...x.grad!.dataSync()]).toEqual([3, 1]);
});

it.each(["f16", "bf16"] as const)("gradients of %s parameters are of that dtype, computed in float32", (dtype) => {
  const x = parameter([1, 2], { dtype });
  const y = x.mul(x).add(tensor([0.5, 0.5]));
  expect(y.dtype).toBe("f32");
  y.sum().backward();
  x.mul(3).sum().backward();
  expect([x.grad!.dtype, ...x.grad!.dataSync()]).toEqual([dtype, 5, 7]);
});
