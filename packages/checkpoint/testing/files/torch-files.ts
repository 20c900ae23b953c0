/** Files that torch 2.13 wrote once (torch/make.py, torch/fsdp2.py), so that readers are tested without it; and a Python that has it. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const FOLDER = fileURLToPath(new URL("./torch", import.meta.url));

export const torchFile = (name: string): string => join(FOLDER, name);

/** What torch itself holds in a file: by the name of a state, its elements. */
export const EXPECTED: Record<string, Record<string, number[]>> = JSON.parse(
  readFileSync(torchFile("expected.json"), "utf8"),
);

/** A Python that has torch 2.13 and safetensors, if there is one. */
export const python = process.env.OPT_TORCH_PYTHON || undefined;
export const withTorch = `with PyTorch${python === undefined ? " (skipped: OPT_TORCH_PYTHON is not set)" : ""}`;

/** Runs a script with its arguments in a folder and gives what it printed. */
export function runPython(script: string, folder: string, ...args: readonly string[]): string {
  const command = script.endsWith(".py") ? [script, ...args] : ["-c", script, ...args];
  return execFileSync(python!, ["-W", "ignore", ...command], { cwd: folder, encoding: "utf8", timeout: 600_000 });
}
