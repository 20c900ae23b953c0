/** Optimizer steps on the device of the run, beside the memory limit of this machine: by the benchmark's own means, shorter. */

import { memoryLimit } from "../../../tools/bench/limits/memory-limit";
import { measure } from "../../../tools/bench/measure";
import { opt } from "../../../tools/bench/opt";
import type { OptimizerName } from "../../../tools/bench/optimizer-work";

export const SPEED_SIZE = 1_048_576;
const ROUNDS = 7;

export interface Speed {
  readonly optimizer: OptimizerName;
  /** Milliseconds a step. */
  readonly ours: number;
  /** What moving the same bytes takes; undefined where no compiler is here. */
  readonly limit: number | undefined;
}

/** One step over a million parameters, by optimizer. */
export async function measureSpeed(device: string): Promise<Speed[]> {
  const speeds: Speed[] = [];
  for (const optimizer of ["NAdam", "AMSGrad", "AdamW"] as const) {
    const work = { optimizer, tensors: 1, size: SPEED_SIZE };
    const { measurements } = await measure(work, [memoryLimit, opt(device)], ROUNDS);
    // Of few and short rounds on a machine that may be busy, the faster ones say more than the middle.
    const time = (name: string) => measurements.find((each) => each.name.startsWith(name))?.quartiles[0];
    speeds.push({ optimizer, ours: time("opt ")!, limit: time("memory limit") });
  }
  return speeds;
}
