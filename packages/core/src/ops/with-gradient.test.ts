import { describe, expect, it } from "vitest";
import { grad, noGrad, parameter, tensor, withGradient } from "../index";

describe("withGradient", () => {
  const cube = (x: ReturnType<typeof parameter>): typeof x =>
    withGradient(
      noGrad(() => x.pow(3)),
      [x],
      (gradient) => [gradient.mul(x.pow(2).mul(3))],
    );

  it("has the gradient that it is given, also differentiated again", () => {
    const x = parameter([2, -1]);
    const [slope] = grad(cube(x).sum(), [x], { createGraph: true });
    expect(slope!.tolist()).toEqual([12, 3]);
    const [curvature] = grad(slope!.sum(), [x]);
    expect(curvature!.tolist()).toEqual([12, -6]);
  });

  it("is on no tape where no input is", () =>
    expect(withGradient(tensor([1]), [tensor([1])], () => [null]).requiresGrad).toBe(false));

  it.each<[string, () => unknown]>([
    ["what is no tensor", () => withGradient(1 as never, [], () => [])],
    ["results of the tape", () => withGradient(parameter([1]).mul(2), [], () => [])],
    ["inputs that are none", () => withGradient(tensor([1]), [1 as never], () => [])],
    ["no function", () => withGradient(tensor([1]), [], 1 as never)],
  ])("refuses %s", (_, call) => expect(call).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" })));
});
