import { expect, it } from "vitest";
import { isStaged } from "./check";

it("a modification of whole tensors makes a step staged, a decay does not", () => {
  const staged = [
    isStaged({ cautious: true }),
    isStaged({ mars: { gamma: 0.025 } }),
    isStaged({ hyperball: true }),
    isStaged({ centralize: true }),
  ];
  expect(staged).toEqual([true, true, true, true]);
  expect([isStaged({}), isStaged({ decay: "l2" })]).toEqual([false, false]);
});
