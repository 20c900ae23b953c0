/** PyTorch's optimizers on the CPU, in each of its implementations; the fastest is the one to beat. */
import type { Contender } from "../contender";
import type { OptimizerWork } from "../optimizer-work";
import { openTorch } from "./process";

export type TorchVariant = "fused" | "foreach" | "single";

/** Why PyTorch has no such implementation. */
/** The works whose optimizer PyTorch has fused. */
const FUSED = ["AdamW", "AMSGrad", "SGD"];

export function missingVariant(variant: TorchVariant, optimizer: string): string | undefined {
  return variant === "fused" && !FUSED.includes(optimizer) ? `PyTorch has no fused ${optimizer}` : undefined;
}

export function torch(variant: TorchVariant): Contender<OptimizerWork> {
  return {
    name: `PyTorch ${variant}`,
    tolerance: 1e-5,
    open: async (work) =>
      missingVariant(variant, work.optimizer) ?? openTorch("pytorch/torch_steps.py", { ...work, variant }),
  };
}
