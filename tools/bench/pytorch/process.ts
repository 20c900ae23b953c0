/** Contenders in PyTorch on the CPU: a script, named from the folder of the benchmarks, run by the Python that OPT_TORCH_PYTHON names. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Session } from "../contender";
import { openProcess } from "../process-session";

export async function openTorch(script: string, work: object): Promise<Session | string> {
  const python = process.env.OPT_TORCH_PYTHON;
  if (python === undefined || !existsSync(python)) return "OPT_TORCH_PYTHON names no Python with torch";
  return openProcess(python, ["-B", fileURLToPath(new URL(`../${script}`, import.meta.url))], work);
}
