/** Host code between launches, in each run of a compiled function. */
import { expect, it } from "vitest";
import { compile, init, parameter, type Tensor, tensor } from "../index";
import { inEachRun } from "./host-code";

it("sees the gradients that it says it looks at, and the tensors of its run", async () => {
  await init("js");
  const x = parameter([1, 2]);
  const seen: unknown[] = [];
  const step = compile((factor: Tensor) => {
    const y = x.mul(factor);
    y.sum().backward();
    inEachRun([y], (now) => seen.push([now.tolist(), x.grad?.tolist()]), [x]);
    x.grad = null;
  });
  for (const factor of [2, 3, 4, 5]) step(tensor([factor]));
  expect(seen).toEqual(
    [2, 3, 4, 5].map((factor) => [
      [factor, 2 * factor],
      [factor, factor],
    ]),
  );
});
