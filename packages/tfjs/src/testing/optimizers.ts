/** Each optimizer of ours, with options that use what it has. */
import { Adam, AdamW } from "@opt/adam-amsgrad";
import { Adamax } from "@opt/adamax";
import type { OptimizerClass } from "@opt/core";
import { NAdam } from "@opt/nadam";
import { RAdam } from "@opt/radam";
import { RMSprop } from "@opt/rmsprop";
import { SGD } from "@opt/sgd";

// biome-ignore lint/suspicious/noExplicitAny: each class has options of its own
export type AnyOptimizer = OptimizerClass<any>;

export const OPTIMIZERS: readonly (readonly [name: string, optimizer: AnyOptimizer, options: { lr: number }])[] = [
  ["AdamW", AdamW, { lr: 0.01 }],
  ["Adam", Adam, { lr: 0.01 }],
  ["AMSGrad", Adam, Object.assign({ lr: 0.01 }, { amsgrad: true, weightDecay: 0.1 })],
  ["NAdam", NAdam, { lr: 0.01 }],
  ["SGD", SGD, Object.assign({ lr: 0.01 }, { momentum: 0.9, nesterov: true })],
  ["RMSprop", RMSprop, Object.assign({ lr: 0.01 }, { momentum: 0.9, centered: true })],
  ["Adamax", Adamax, { lr: 0.01 }],
  ["RAdam", RAdam, { lr: 0.01 }],
  ["NAdam with bf16 state", NAdam, Object.assign({ lr: 0.01 }, { stateDType: "bf16" })],
  ["AdamW that climbs and clips", AdamW, Object.assign({ lr: 0.01 }, { maximize: true, clip: { norm: 1 } })],
];
