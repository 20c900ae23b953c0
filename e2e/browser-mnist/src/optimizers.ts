/** The optimizers that the page offers, in one list. */
import { Adam, AdamW } from "@opt/adam-amsgrad";
import { Adamax } from "@opt/adamax";
import type { Tensor } from "@opt/core";
import { NAdam } from "@opt/nadam";
import { RAdam } from "@opt/radam";
import { RMSprop } from "@opt/rmsprop";
import { SGD } from "@opt/sgd";
import type { FitOptimizer } from "@opt/train";

/** What the page asks of an optimizer. */
interface Trainer extends FitOptimizer {
  dispose(): void;
}

type Parameters = Iterable<[string, Tensor]>;

interface Choice {
  /** The learning rate that the page begins with. */
  readonly lr: number;
  readonly make: (parameters: Parameters, lr: number) => Trainer;
}

export const OPTIMIZERS = {
  NAdam: { lr: 0.002, make: (parameters, lr) => new NAdam(parameters, { lr }) },
  Adam: { lr: 0.001, make: (parameters, lr) => new Adam(parameters, { lr }) },
  AdamW: { lr: 0.001, make: (parameters, lr) => new AdamW(parameters, { lr }) },
  "Adam, AMSGrad": { lr: 0.001, make: (parameters, lr) => new Adam(parameters, { lr, amsgrad: true }) },
  "AdamW, AMSGrad": { lr: 0.001, make: (parameters, lr) => new AdamW(parameters, { lr, amsgrad: true }) },
  Adamax: { lr: 0.002, make: (parameters, lr) => new Adamax(parameters, { lr }) },
  RAdam: { lr: 0.001, make: (parameters, lr) => new RAdam(parameters, { lr }) },
  RMSprop: { lr: 0.001, make: (parameters, lr) => new RMSprop(parameters, { lr }) },
  "SGD, momentum": { lr: 0.05, make: (parameters, lr) => new SGD(parameters, { lr, momentum: 0.9 }) },
} satisfies Record<string, Choice>;

export type OptimizerName = keyof typeof OPTIMIZERS;

export const isOptimizerName = (name: string): name is OptimizerName => Object.hasOwn(OPTIMIZERS, name);
