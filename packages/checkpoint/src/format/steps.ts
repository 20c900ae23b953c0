/** Steps of a run: a step is a folder `step-00000042` that holds a manifest; whatever has a suffix is no step. */

import { OptError } from "@opt/core";
import { diskError, type FileSystem, isMissing } from "../stores/file-system";
import { join } from "../stores/path";
import { MANIFEST_FILE, readManifest } from "./manifest";

export interface Step {
  readonly step: number;
  readonly path: string;
}

export function stepName(step: number): string {
  return `step-${String(step).padStart(8, "0")}`;
}

const FOLDER = /^step-(\d{8,15})$/;

/** How often a folder is listed again because a step moved meanwhile. */
const TRIES = 20;

/** The complete steps in a folder, oldest first. @throws OptError MISSING if there is no folder */
export async function listSteps(fileSystem: FileSystem, folder: string): Promise<Step[]> {
  try {
    for (let tries = 1; ; tries++) {
      const { steps, moved } = await listOnce(fileSystem, folder);
      if (tries >= TRIES || moved.every((step) => steps.has(step)))
        return [...steps].sort(([a], [b]) => a - b).map(([step, path]) => ({ step, path }));
    }
  } catch (error) {
    throw diskError(error, folder, "listing");
  }
}

/** `moved`: steps that were renamed or removed between being listed and being looked at. */
async function listOnce(fileSystem: FileSystem, folder: string) {
  const steps = new Map<number, string>();
  const moved: number[] = [];
  for (const { name, kind } of await fileSystem.list(folder)) {
    const step = Number(FOLDER.exec(name)?.[1]);
    if (kind !== "folder" || stepName(step) !== name) continue;
    const path = join(folder, name);
    if ((await fileSystem.kind(join(path, MANIFEST_FILE))) === "file") steps.set(step, path);
    else if (await isAnother(fileSystem, path)) moved.push(step);
  }
  return { steps, moved };
}

/** Whether a folder that had no manifest is gone, or has one now. Only one listing of it tells: between two calls it may be replaced. */
async function isAnother(fileSystem: FileSystem, folder: string): Promise<boolean> {
  try {
    return (await fileSystem.list(folder)).some(({ name }) => name === MANIFEST_FILE);
  } catch (error) {
    if (isMissing(error)) return true;
    throw error;
  }
}

/** The step whose plain value of this name is least, or greatest. */
export interface Best {
  readonly value: string;
  readonly highest?: boolean;
}

/** The steps that have a number of this name, the best first; of equals the newer. */
export async function bestFirst(
  fileSystem: FileSystem,
  steps: readonly Step[],
  { value, highest = false }: Best,
): Promise<Step[]> {
  const scored: (Step & { readonly score: number })[] = [];
  for (const { step, path } of steps) {
    const score = (await readManifest(fileSystem, path)).values[value];
    if (typeof score === "number") scored.push({ step, path, score: highest ? -score : score });
  }
  return scored.sort((a, b) => a.score - b.score || b.step - a.step);
}

/** The folder of a step: `folder` itself if it is one, else the step asked for in it, else its latest. @throws OptError MISSING */
export async function findStep(fileSystem: FileSystem, folder: string, step?: number, best?: Best): Promise<string> {
  const isAny = step === undefined && best === undefined;
  if (isAny && (await fileSystem.kind(join(folder, MANIFEST_FILE))) === "file") return folder;
  const steps = await listSteps(fileSystem, folder);
  const found = best
    ? (await bestFirst(fileSystem, steps, best))[0]
    : steps.findLast((one) => isAny || one.step === step);
  if (found) return found.path;
  const have = steps.length === 0 ? "it holds none" : `it holds ${steps.map((one) => one.step).join(", ")}`;
  const wanted = best
    ? `a step with a number ${JSON.stringify(best.value)}`
    : isAny
      ? "a complete step"
      : `step ${step}`;
  const advice = "Check the path; folders with a suffix are unfinished saves.";
  throw new OptError("MISSING", folder, `${wanted} is wanted, ${have}.`, advice);
}

/** Names of the folders in it that hold complete steps. */
export async function runsIn(fileSystem: FileSystem, folder: string): Promise<string[]> {
  const runs: string[] = [];
  for (const { name, kind } of await fileSystem.list(folder)) {
    if (kind === "folder" && (await listSteps(fileSystem, join(folder, name))).length > 0) runs.push(name);
  }
  return runs.sort();
}
