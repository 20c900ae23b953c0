/** Rates of schedules with a warm-up inside, by hand. */
import { expect, it } from "vitest";
import { CosineAnnealingLR, type LRScheduler, type ScheduledOptimizer, WarmupStableDecayLR } from "./index";

const HALF = Math.SQRT1_2;

it.each<[string, (o: ScheduledOptimizer) => LRScheduler, number[]]>([
  ["linear", (o) => new WarmupStableDecayLR(o, { warmup: 2, stable: 2, decay: 4 }), [0, 1, 2, 2, 2, 1.5, 1, 0.5, 0, 0]],
  [
    "sqrt, without a warm-up",
    (o) => new WarmupStableDecayLR(o, { warmup: 0, stable: 1, decay: 4, shape: "sqrt" }),
    [2, 2, 1, 2 - 2 * HALF, 2 - Math.sqrt(3), 0, 0],
  ],
  [
    "cosine",
    (o) => new WarmupStableDecayLR(o, { warmup: 1, stable: 0, decay: 4, shape: "cosine" }),
    [0, 2, 1 + HALF, 1, 1 - HALF, 0, 0],
  ],
  [
    "a wave",
    (o) => new CosineAnnealingLR(o, { tMax: 6, warmup: 2, etaMin: 1 }),
    [0, 1, 2, 1.5 + HALF / 2, 1.5, 1.5 - HALF / 2, 1],
  ],
])("%s", (_, make, rates) => {
  const optimizer = { groups: [{ lr: 2 }] };
  const schedule = make(optimizer);
  for (const [epoch, rate] of rates.entries()) {
    expect(optimizer.groups[0]!.lr, `epoch ${epoch}`).toBeCloseTo(rate, 14);
    schedule.step();
  }
});
