/** The optimizers that the page offers, in one list. */
import { Adam, AdamW } from "@opt/adam-amsgrad";
import type { OptimizerState, Tensor } from "@opt/core";
import { NAdam } from "@opt/nadam";

/** What the page asks of an optimizer. */
export interface Trainer {
  step(): unknown;
  zeroGrad(): void;
  stateDict(): OptimizerState;
  loadStateDict(state: OptimizerState): void;
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
} satisfies Record<string, Choice>;

export type OptimizerName = keyof typeof OPTIMIZERS;

export const isOptimizerName = (name: string): name is OptimizerName => Object.hasOwn(OPTIMIZERS, name);
