/** Which older steps go once a new one exists. */

import { MANIFEST_FILE, MAX_MANIFEST_BYTES, parseManifest } from "../../format/manifest";
import { readWhole } from "../../format/source";
import type { Step } from "../../format/steps";
import type { FileSystem } from "../../stores/file-system";
import { join } from "../../stores/path";
import type { Retention } from "./keep";

/** `steps`, oldest first, less those that stay. */
export async function stepsToRemove(
  fileSystem: FileSystem,
  steps: readonly Step[],
  { newest = 1, every, best }: Retention,
): Promise<Step[]> {
  const kept = new Set(steps.slice(-newest).map(({ step }) => step));
  if (every !== undefined) for (const { step } of steps) if (step % every === 0) kept.add(step);
  if (best !== undefined) for (const step of await bestSteps(fileSystem, steps, best)) kept.add(step);
  return steps.filter(({ step }) => !kept.has(step));
}

async function bestSteps(
  fileSystem: FileSystem,
  steps: readonly Step[],
  { value, count = 1, highest = false }: NonNullable<Retention["best"]>,
): Promise<number[]> {
  const scored: { step: number; score: number }[] = [];
  for (const { step, path } of steps) {
    const file = join(path, MANIFEST_FILE);
    const { values } = parseManifest(await readWhole(fileSystem, file, MAX_MANIFEST_BYTES), file);
    const score = values[value];
    if (typeof score === "number") scored.push({ step, score: highest ? -score : score });
  }
  // Of equals the newer stays.
  scored.sort((a, b) => a.score - b.score || b.step - a.step);
  return scored.slice(0, count).map(({ step }) => step);
}
