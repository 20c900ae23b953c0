import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../../testing/fake-backend";
import { compile } from "../../compile/compile";
import { tensor } from "../../create";
import { cholesky, choleskySolve, det, einsum, inverse, prod, slogdet, solve } from "../../functions";
import { eye } from "../../ranges";
import { autocast } from "../../tensor/autocast";
import type { Tensor } from "../../tensor/tensor";

describe("what has no result", () => {
  const singular = [
    [1, 2],
    [2, 4],
  ];

  it.each<[string, (x: Tensor) => unknown]>([
    ["cholesky", (x) => cholesky(x)],
    ["solve", (x) => solve(x, x)],
    ["inverse", (x) => inverse(x)],
  ])("%s throws, in each run of a compiled function too", (_, run) => {
    expectCode("BAD_ARGUMENT", () => run(tensor(singular)));
    const compiled = compile((x: Tensor) => run(x) as Tensor, { check: "never" });
    for (let i = 0; i < 3; i++) compiled(eye(2));
    expectCode("BAD_ARGUMENT", () => compiled(tensor(singular)));
  });

  it("names the first minor that is not positive", () => {
    const x = [1, 1, -1].flatMap((value, i) => [0, 1, 2].map((j) => (i === j ? value : 0)));
    expect(() => cholesky(tensor(new Float64Array(x), { shape: [3, 3] }))).toThrow("order 3");
  });

  it("is not finite on devices that answer later", async () => {
    const device = new FakeDevice({ async: true });
    const x = tensor(singular, { device });
    expect([...(await cholesky(x.neg()).data())][0]).toBeNaN();
    expect([...(await inverse(x).data())].every(Number.isFinite)).toBe(false);
    expect(Math.abs(await det(x).item())).toBe(0);
  });

  it("is no matrix, or none of floats", () => {
    for (const run of [cholesky, inverse, slogdet, det]) {
      expectCode("BAD_SHAPE", () => run(tensor([[1, 2]])));
      expectCode("BAD_SHAPE", () => run(tensor([1])));
      expectCode("BAD_DTYPE", () => run(tensor([[1]], { dtype: "bf16" })));
    }
    expectCode("BAD_SHAPE", () => solve(eye(2), tensor([1, 2, 3])));
    expectCode("BAD_SHAPE", () => choleskySolve(tensor([1, 2]), eye(2)));
  });
});

it("keeps float32 within autocast, and takes 16 bits as float32", () => {
  const x = tensor([
    [1.001, 0.002],
    [0.002, 1.003],
  ]);
  const all = (of: Tensor) => [
    cholesky(of),
    choleskySolve(of, of),
    solve(of, of),
    inverse(of),
    det(of),
    slogdet(of).logabsdet,
    prod(of),
  ];
  const low = x.to("bf16");
  const numbers = (list: Tensor[]) => list.map((y) => [y.dtype, ...y.dataSync()]);
  expect(numbers(autocast("bf16", () => all(x)))).toEqual(numbers(all(x)));
  expect(numbers(autocast("bf16", () => all(low)))).toEqual(numbers(all(low.to("f32"))));
  expect(autocast("bf16", () => einsum("ij,jk->ik", x, x)).dtype).toBe("bf16");
});
