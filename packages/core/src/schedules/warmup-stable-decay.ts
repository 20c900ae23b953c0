// The schedule of long runs whose end is decided late: up, level, down.
import { oneOf, optionsOf, wholeFrom } from "./scheduler/check";
import { PlannedLR } from "./scheduler/planned";
import type { ScheduledOptimizer, ScheduleOptions } from "./scheduler/scheduled-optimizer";

export interface WarmupStableDecayLROptions extends ScheduleOptions {
  /** Epochs in which the lr rises from 0; 0 begins at the base lr. */
  warmup: number;
  /** Epochs at the base lr. */
  stable: number;
  /** Epochs in which the lr falls to 0. */
  decay: number;
  /** How it falls. Default "linear". */
  shape?: "linear" | "cosine" | "sqrt";
}

/** What is left of the base lr after a part of the decay, from 0 to 1. */
const SHAPES = {
  linear: (part: number) => 1 - part,
  cosine: (part: number) => (1 + Math.cos(Math.PI * part)) / 2,
  sqrt: (part: number) => 1 - Math.sqrt(part),
} as const;

/**
 * Raises the lr linearly from 0 to the base lr, holds it, and lowers it to 0.
 *
 * lr(e) = base * e / warmup for e < warmup, then base for `stable` epochs, then base * left(d / decay) at the d-th epoch of the decay.
 * left(x) = 1 - x for "linear", (1 + cos(pi x)) / 2 for "cosine", 1 - sqrt(x) for "sqrt". After the decay it stays at 0.
 *
 * @throws OptError BAD_ARGUMENT for numbers of epochs that are not whole, a decay below 1 or another shape
 * @see Hu et al. 2024 (MiniCPM); Hägele et al. 2024 for "sqrt"
 * @example
 * const schedule = new WarmupStableDecayLR(optimizer, { warmup: 100, stable: 800, decay: 100, shape: "sqrt" });
 */
export class WarmupStableDecayLR extends PlannedLR {
  constructor(optimizer: ScheduledOptimizer, options: WarmupStableDecayLROptions) {
    super("WarmupStableDecayLR", optimizer, options);
    const checks = { warmup: wholeFrom(0), stable: wholeFrom(0), decay: wholeFrom(1), shape: shapeOf };
    const { warmup, stable, decay, shape } = optionsOf(this.kind, options, checks, { shape: "linear" });
    const left = SHAPES[shape];
    this.overwrite((epoch, index) => {
      if (epoch < warmup) return this.base(index) * (epoch / warmup);
      const part = Math.max(0, epoch - warmup - stable) / decay;
      return part >= 1 ? 0 : this.base(index) * left(part);
    });
  }
}

function shapeOf(where: string, name: string, shape: keyof typeof SHAPES): keyof typeof SHAPES {
  return oneOf(where, name, shape, Object.keys(SHAPES) as (keyof typeof SHAPES)[]);
}
