import { describe, expect, it } from "vitest";
import { clipGradNorm, type ErrorCode, grad, noGrad, parameter, tensor, withGradient } from "../index";

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

  it("leaves the tensors that backward gives to their owners, also the inputs and one given twice", () => {
    const [a, b, own] = [parameter([1, 2]), parameter([3, 4]), tensor([5, 6])];
    const product = () => noGrad(() => a.mul(b));
    for (const given of [
      [own, own],
      [b, a],
    ]) {
      for (let i = 0; i < 2; i++)
        withGradient(product(), [a, b], () => given)
          .sum()
          .backward();
      clipGradNorm([a, b], 1);
    }
    expect([a, b, own].map((x) => x.tolist())).toEqual([
      [1, 2],
      [3, 4],
      [5, 6],
    ]);
    withGradient(product().mul(1), [a.mul(1), b], (gradient) => [gradient, gradient]).backward(own);
    expect([own.tolist(), own.isDisposed]).toEqual([[5, 6], false]);
  });

  it.each<[ErrorCode, unknown]>([
    ["BAD_ARGUMENT", undefined],
    ["BAD_ARGUMENT", []],
    ["BAD_ARGUMENT", tensor([1, 1])],
    ["BAD_ARGUMENT", [1]],
    ["BAD_ARGUMENT", [undefined]],
    ["BAD_ARGUMENT", Promise.resolve([null])],
    ["BAD_SHAPE", [tensor([1, 1, 1])]],
    ["BAD_DTYPE", [tensor([1, 1], { dtype: "f64" })]],
  ])("rejects with %s that backward gives %s", (code, given) => {
    const x = parameter([1, 2]);
    const output = noGrad(() => x.mul(2));
    const loss = withGradient(output, [x], () => given as never).sum();
    expect(() => loss.backward()).toThrow(expect.objectContaining({ code }));
    expect(x.grad).toBe(null);
  });

  it("takes null, and looks at no gradient of what requires none", () => {
    const x = parameter([1, 2]);
    withGradient(tensor([2, 4]), [x, tensor([1])], () => [null, tensor([1, 2, 3])])
      .sum()
      .backward();
    expect(x.grad).toBe(null);
  });

  it.each<[string, () => unknown]>([
    ["what is no tensor", () => withGradient(1 as never, [], () => [])],
    ["results of the tape", () => withGradient(parameter([1]).mul(2), [], () => [])],
    ["invalid inputs", () => withGradient(tensor([1]), [1 as never], () => [])],
    ["no function", () => withGradient(tensor([1]), [], 1 as never)],
  ])("rejects %s", (_, call) => expect(call).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" })));
});
