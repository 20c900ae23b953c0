/** Which steps stay once a new one exists. */
import { check, checkOptions, show } from "@opt/core";
import { MANIFEST_FILE } from "../../format/manifest";
import type { Json } from "../../format/source";
import { type Best, bestFirst, listSteps, type Step } from "../../format/steps";
import { isCount } from "../../layout/counts";
import type { FileSystem } from "../../stores/file-system";
import { basename, join } from "../../stores/path";
import { removeLeftover } from "./leftovers";
import type { Attempt } from "./owner";

/** A step stays if any of these says so; the newest one always does. */
export interface Retention {
  /** How many of the newest steps stay. */
  readonly last?: number;
  /** Steps whose number is a multiple of this stay. */
  readonly every?: number;
  /** The `count` (1) steps stay whose plain value of this name is least; with `highest`, greatest. Every save has it: null where it is not known. */
  readonly best?: Best & { readonly count?: number };
}

/**
 * A number is how many of the newest stay.
 *
 * @param values of the step that is saved, if one is
 * @throws OptError BAD_ARGUMENT
 */
export function checkedRetention(
  where: string,
  keep: number | Retention,
  values?: { readonly [key: string]: Json },
): Retention {
  const retention = typeof keep === "number" ? { last: keep } : keep;
  checkOptions(`${where} keep`, retention, { last: "number", every: "number", best: "object" });
  const { last, every, best } = retention;
  if (best !== undefined)
    checkOptions(`${where} keep.best`, best, { value: "string", count: "number", highest: "boolean" });
  for (const [name, count] of Object.entries({
    "keep.last": last,
    "keep.every": every,
    "keep.best.count": best?.count,
  })) {
    const isOne = count === undefined || (isCount(count) && count > 0);
    check(isOne, "BAD_ARGUMENT", where, () => `${name} must be at least 1, got ${count}.`);
  }
  const value = best && values?.[best.value];
  const isThere = !best || !values || typeof value === "number" || value === null;
  check(
    isThere,
    "BAD_ARGUMENT",
    where,
    () =>
      `keep.best chooses by the number values.${best!.value}, got ${show(value)} among ${show(Object.keys(values ?? {}))}.`,
    "Save it with each step, null where it is not known.",
  );
  return retention;
}

/** `steps`, oldest first, less those that stay. */
async function stepsToRemove(
  fileSystem: FileSystem,
  steps: readonly Step[],
  { last = 1, every, best }: Retention,
): Promise<Step[]> {
  const kept = new Set(steps.slice(-last).map(({ step }) => step));
  if (every !== undefined) for (const { step } of steps) if (step % every === 0) kept.add(step);
  if (best !== undefined)
    for (const { step } of (await bestFirst(fileSystem, steps, best)).slice(0, best.count ?? 1)) kept.add(step);
  return steps.filter(({ step }) => !kept.has(step));
}

/** The steps of a run that may go. One that another job is replacing is that job's. */
export async function stepsThatGo(fileSystem: FileSystem, run: string, keep: Retention): Promise<Step[]> {
  const steps = await stepsToRemove(fileSystem, await listSteps(fileSystem, run), keep);
  const names = (await fileSystem.list(run)).map(({ name }) => name);
  return steps.filter(({ path }) => !names.some((name) => name.startsWith(`${basename(path)}.tmp-`)));
}

/** Removes steps of a run. `each` runs what is done to one of them, and may catch what it throws. */
export async function removeSteps(
  fileSystem: FileSystem,
  run: string,
  steps: readonly Step[],
  attempt: Attempt,
  each: (path: string, body: () => Promise<void>) => Promise<void> = (_, body) => body(),
): Promise<void> {
  if (steps.length === 0) return;
  const aside = (path: string) => `${path}.tmp-${attempt}`;
  // Half a step must never look like one, after a power cut neither: what was swept goes before.
  await fileSystem.syncFolder(run);
  for (const { path } of steps) await each(path, () => hide(fileSystem, path, aside(path), attempt));
  await fileSystem.syncFolder(run);
  for (const { path } of steps) await each(path, () => removeLeftover(fileSystem, aside(path)));
}

/** From now on no reader takes it for a step. */
async function hide(fileSystem: FileSystem, path: string, aside: string, attempt: Attempt): Promise<void> {
  if (!fileSystem.unfinished) return fileSystem.rename(path, aside);
  await fileSystem.unfinished.createOnce(aside, attempt);
  await fileSystem.remove(join(path, MANIFEST_FILE));
}
