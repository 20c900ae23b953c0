/** Accumulated gradients become means, on every dtype, in compiled functions and of row-sparse ones. */
import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { compile, gatherSparse, parameter, type Tensor, tensor, viewAsComplex } from "../../index";
import { divideGradients } from "./divide";

it.each(["f32", "f64", "bf16", "f16"] as const)("rounds each quotient of %s once", (dtype) => {
  const w = parameter([1, 2, 3], { dtype });
  w.grad = tensor([1, 10, -7], { dtype });
  divideGradients([w], tensor(3, { dtype: dtype === "f64" ? "f64" : "f32" }));
  expect(w.grad.tolist()).toEqual(
    tensor([1 / 3, 10 / 3, -7 / 3], { dtype: "f64" })
      .to(dtype)
      .tolist(),
  );
});

it("divides complex and row-sparse gradients, and leaves out what has none", () => {
  const c = parameter(viewAsComplex(tensor([[3, -6]])));
  c.grad = viewAsComplex(tensor([[3, -6]]));
  const table = parameter([[1], [2], [3]]);
  gatherSparse(table, tensor(Int32Array.of(2, 0, 2)))
    .sum()
    .backward();
  divideGradients([c, table, parameter([1])], tensor(4));
  expect(Array.from(c.grad.dataSync())).toEqual([0.75, -1.5]);
  expect((table.grad as Tensor & { toDense(): Tensor }).toDense().tolist()).toEqual([[0.25], [0], [0.5]]);
});

it("follows its divisor in a compiled function", async () => {
  const w = parameter([1]);
  const divisor = tensor(2);
  const step = compile((x: Tensor) => {
    w.mul(x).sum().backward();
    divideGradients([w], divisor);
    const result = w.grad!.clone();
    w.grad = null;
    return result;
  });
  for (const by of [2, 4, 8, 5, 3]) {
    divisor.set(by);
    expect(await step(tensor([6])).item()).toBe(Math.fround(6 / by));
  }
});

it("rejects a number, and a tensor of several elements", () => {
  expectCode("BAD_ARGUMENT", () => divideGradients([parameter([1])], 2 as never));
  const w = parameter([1]);
  w.grad = tensor([1]);
  expectCode("BAD_SHAPE", () => divideGradients([w], tensor([1, 2])));
});
