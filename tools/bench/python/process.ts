/** Contenders in Python on the CPU: a script of this folder, run by the interpreter that an environment variable names. Of PyTorch's implementations the fastest is the one to beat. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Contender, Session } from "../contender";
import type { OptimizerWork } from "../optimizer-work";
import { openProcess } from "../process-session";

async function openPython(variable: string, library: string, script: string, work: object): Promise<Session | string> {
  const python = process.env[variable];
  if (python === undefined || !existsSync(python)) return `${variable} names no Python with ${library}`;
  return openProcess(python, ["-B", fileURLToPath(new URL(script, import.meta.url))], work);
}

export const openTorch = (script: string, work: object) => openPython("OPT_TORCH_PYTHON", "torch", script, work);
export const openJax = (script: string, work: object) => openPython("OPT_JAX_PYTHON", "jax and optax", script, work);

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
