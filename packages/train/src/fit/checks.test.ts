/** Checks come at the start, at the end, and take a small share of the time in between. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Checks } from "./checks";

let now = 0;
beforeEach(() => {
  now = 0;
  vi.spyOn(performance, "now").mockImplementation(() => now);
});
afterEach(() => vi.restoreAllMocks());

it("takes at most 2 % of the time, but for the first one and the last epoch", () => {
  const checks = new Checks();
  const due: number[] = [];
  for (let epoch = 0; epoch < 100; epoch++) {
    now = 10 * epoch; // 20 steps take 10 ms, a check takes 5 ms
    if (!checks.isDue(20 * epoch, epoch === 99)) continue;
    due.push(epoch);
    checks.took(5);
  }
  expect(due).toEqual([1, 25, 50, 75, 99]);
});

it("is due in each epoch where it costs little, and 16 steps after the last one at least", () => {
  const checks = new Checks();
  const due = [0, 8, 16, 24, 32, 200, 216, 220].filter((step) => {
    now = 100 * step;
    const isDue = checks.isDue(step, false);
    if (isDue) checks.took(1);
    return isDue;
  });
  expect(due).toEqual([16, 32, 200, 216]);
});
