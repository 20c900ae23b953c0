/** Contenders in Python on the CPU: a script of this folder, run by the interpreter that an environment variable names. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Session } from "../contender";
import { openProcess } from "../process-session";

async function openPython(variable: string, library: string, script: string, work: object): Promise<Session | string> {
  const python = process.env[variable];
  if (python === undefined || !existsSync(python)) return `${variable} names no Python with ${library}`;
  return openProcess(python, ["-B", fileURLToPath(new URL(script, import.meta.url))], work);
}

export const openTorch = (script: string, work: object) => openPython("OPT_TORCH_PYTHON", "torch", script, work);
export const openJax = (script: string, work: object) => openPython("OPT_JAX_PYTHON", "jax and optax", script, work);
