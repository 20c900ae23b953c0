/** Every optimizer of the workspace whose steps are elementwise, with its options; and options that core adds to each. */
import { Adam, AdamW } from "@opt/adam-amsgrad";
import { NAdam } from "@opt/nadam";
import { type AnyOptimizer, optimizerRuns } from "@opt/testkit/optimizers";

export type { AnyOptimizer };

const runs = (await optimizerRuns({ lr: 0.01 })).filter(({ isElementwise }) => isElementwise);

export const OPTIMIZERS: readonly (readonly [name: string, optimizer: AnyOptimizer, options: { lr: number }])[] = [
  ...runs.map(({ title, Optimizer, options }) => [title, Optimizer, options as { lr: number }] as const),
  ["AMSGrad", Adam, Object.assign({ lr: 0.01 }, { amsgrad: true, weightDecay: 0.1 })],
  ["NAdam with bf16 state", NAdam, Object.assign({ lr: 0.01 }, { stateDType: "bf16" })],
  ["AdamW that climbs and clips", AdamW, Object.assign({ lr: 0.01 }, { maximize: true, clip: { norm: 1 } })],
];
