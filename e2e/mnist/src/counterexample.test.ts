import { expect, it } from "vitest";
import { descend } from "./counterexample";

it("Adam is driven to the worst point, AMSGrad to the best", () => {
  const end = (amsgrad: boolean) => descend(amsgrad, 20_000).trace.at(-1)!;
  expect(end(false).x).toBeGreaterThan(0.9);
  expect(end(true).x).toBeLessThan(-0.9);
  expect(end(true).regret).toBeLessThan(0.6 * end(false).regret);
});
