/** PyTorch's optimizers on the CPU, in each of its implementations; the fastest is the one to beat. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Contender } from "./contender";
import { openProcess } from "./process-session";

export type TorchVariant = "fused" | "foreach" | "single";

export function torch(variant: TorchVariant): Contender {
  return {
    name: `PyTorch ${variant}`,
    tolerance: 1e-5,
    async open(work) {
      const python = process.env.OPT_TORCH_PYTHON;
      if (python === undefined || !existsSync(python)) return "OPT_TORCH_PYTHON names no Python with torch";
      if (variant === "fused" && work.optimizer === "NAdam") return "PyTorch has no fused NAdam";
      return openProcess(python, [fileURLToPath(new URL("./torch_steps.py", import.meta.url))], { ...work, variant });
    },
  };
}
