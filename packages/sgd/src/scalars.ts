/** SGD's per-step numbers, in float64. */
import { type Arithmetic, type Counters, Tensor } from "@opt/core";
import type { SGDOptions } from "./options";

/** `step` counts the steps with momentum; without, there is no state, as in PyTorch. */
export function advanceSGD(counters: Counters, { momentum }: SGDOptions): Counters {
  return momentum === 0 ? counters : { step: counters.step + 1 };
}

/** PyTorch counts no steps: where there is a momentum, there was a first one. */
export function countedSGD({ step, momentum_buffer }: Readonly<Record<string, unknown>>): Counters {
  return { step: step === undefined ? Number(momentum_buffer instanceof Tensor) : (step as number) };
}

export function sgdScalars(options: SGDOptions, { step }: Counters, { sub, neg }: Arithmetic): Record<string, number> {
  const { lr, momentum, dampening, weightDecay } = options;
  return {
    decay: weightDecay,
    momentum,
    oneMinusDampening: sub(1, dampening),
    isFirst: step === 1 ? 1 : 0,
    negLr: neg(lr),
  };
}
