/** PyTorch's optimizers on the CPU, in each of its implementations; the fastest is the one to beat. */
import type { Contender } from "../contender";
import type { OptimizerWork } from "../optimizer-work";
import { openTorch } from "./process";

/** "torch.compile" compiles forward, backward and loss, and steps with the fused optimizer: compiled ones were slower. */
export type TorchVariant = "fused" | "foreach" | "single" | "torch.compile";

/** The works whose optimizer PyTorch has fused. */
const FUSED = ["AdamW", "AMSGrad", "SGD", "Adagrad"];

/** Why PyTorch has no such implementation. */
export function missingVariant(variant: TorchVariant, optimizer: string): string | undefined {
  if (optimizer === "Lion") return "PyTorch has no Lion";
  const needsFused = variant === "fused" || variant === "torch.compile";
  return needsFused && !FUSED.includes(optimizer) ? `PyTorch has no fused ${optimizer}` : undefined;
}

export function torch(variant: TorchVariant): Contender<OptimizerWork> {
  return {
    name: `PyTorch ${variant}`,
    tolerance: 1e-5,
    open: async (work) => missingVariant(variant, work.optimizer) ?? openTorch("torch_steps.py", { ...work, variant }),
  };
}
