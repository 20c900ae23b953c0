/** The optimizers that are compared. */
import { Adam, AdamW } from "@opt/adam-amsgrad";
import type { Tensor } from "@opt/core";
import { NAdam } from "@opt/nadam";

export type OptimizerName = "NAdam" | "Adam" | "AMSGrad" | "AdamW";

type Parameters = Iterable<[string, Tensor]>;

export const optimizers: Record<OptimizerName, (parameters: Parameters, lr?: number) => NAdam | Adam | AdamW> = {
  NAdam: (parameters, lr = 2e-3) => new NAdam(parameters, { lr }),
  Adam: (parameters, lr = 1e-3) => new Adam(parameters, { lr }),
  AMSGrad: (parameters, lr = 1e-3) => new Adam(parameters, { lr, amsgrad: true }),
  AdamW: (parameters, lr = 1e-3) => new AdamW(parameters, { lr }),
};

export const optimizerNames = Object.keys(optimizers) as OptimizerName[];
