/** Steps of a run: a step is a folder `step-00000042` that holds a manifest; whatever has a suffix is no step. */

import { OptError } from "@opt/core";
import { diskError, type FileSystem } from "../stores/file-system";
import { join } from "../stores/path";
import { MANIFEST_FILE } from "./manifest";

export interface Step {
  readonly step: number;
  readonly path: string;
}

export function stepName(step: number): string {
  return `step-${String(step).padStart(8, "0")}`;
}

/** A step that was set aside while another took its place: it counts only while the other is not there. */
const FOLDER = /^step-(\d{8,15})(\.old-(?!.*\.tmp-).+)?$/;

/** The complete steps in a folder, oldest first. Throws MISSING where there is no folder. */
export async function listSteps(fileSystem: FileSystem, folder: string): Promise<Step[]> {
  const found = new Map<number, Step & { setAside: boolean }>();
  try {
    for (const { name, kind } of await fileSystem.list(folder)) {
      const match = FOLDER.exec(name);
      if (!match || kind !== "folder") continue;
      const step = Number(match[1]);
      const path = join(folder, name);
      const setAside = match[2] !== undefined;
      if (stepName(step) !== name.replace(/\.old-.+$/, "") || (found.has(step) && setAside)) continue;
      if ((await fileSystem.kind(join(path, MANIFEST_FILE))) === "file") found.set(step, { step, path, setAside });
    }
  } catch (error) {
    throw diskError(error, folder, "listing");
  }
  return [...found.values()].sort((a, b) => a.step - b.step).map(({ step, path }) => ({ step, path }));
}

/** The folder of a step: `folder` itself if it is one, else the step asked for in it, else its latest. Throws MISSING. */
export async function findStep(fileSystem: FileSystem, folder: string, step?: number): Promise<string> {
  if (step === undefined && (await fileSystem.kind(join(folder, MANIFEST_FILE))) === "file") return folder;
  const steps = await listSteps(fileSystem, folder);
  const found = step === undefined ? steps.at(-1) : steps.find((one) => one.step === step);
  if (found) return found.path;
  const have = steps.length === 0 ? "it holds none" : `it holds ${steps.map((one) => one.step).join(", ")}`;
  const wanted = step === undefined ? "a complete step" : `step ${step}`;
  throw new OptError(
    "MISSING",
    folder,
    `${wanted} is wanted, ${have}.`,
    "Check the path; folders with a suffix are unfinished saves.",
  );
}

/** Names of the folders in it that hold complete steps. */
export async function runsIn(fileSystem: FileSystem, folder: string): Promise<string[]> {
  const runs: string[] = [];
  for (const { name, kind } of await fileSystem.list(folder)) {
    if (kind === "folder" && (await listSteps(fileSystem, join(folder, name))).length > 0) runs.push(name);
  }
  return runs.sort();
}
