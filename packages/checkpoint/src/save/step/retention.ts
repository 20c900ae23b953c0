/** Which steps stay once a new one exists. */
import { check, checkOptions, show } from "@opt/core";
import type { Json } from "../../format/source";
import { type Best, bestFirst, type Step } from "../../format/steps";
import { isCount } from "../../layout/counts";
import type { FileSystem } from "../../stores/file-system";

/** A step stays if any of these says so; the newest one always does. */
export interface Retention {
  /** How many of the newest steps stay. */
  readonly newest?: number;
  /** Steps whose number is a multiple of this stay. */
  readonly every?: number;
  /** The `count` (1) steps stay whose plain value of this name is least; with `highest`, greatest. Every save has it: null where it is not known. */
  readonly best?: Best & { readonly count?: number };
}

/**
 * A number is how many of the newest stay.
 *
 * @param values of the step that is saved
 * @throws OptError BAD_ARGUMENT
 */
export function checkedRetention(
  where: string,
  keep: number | Retention,
  values: { readonly [key: string]: Json },
): Retention {
  const retention = typeof keep === "number" ? { newest: keep } : keep;
  checkOptions(`${where} keep`, retention, { newest: "number", every: "number", best: "object" });
  const { newest, every, best } = retention;
  if (best !== undefined)
    checkOptions(`${where} keep.best`, best, { value: "string", count: "number", highest: "boolean" });
  for (const [name, count] of Object.entries({ keep: newest, "keep.every": every, "keep.best.count": best?.count })) {
    const isOne = count === undefined || (isCount(count) && count > 0);
    check(isOne, "BAD_ARGUMENT", where, () => `${name} must be at least 1, got ${count}.`);
  }
  const value = best && values[best.value];
  const isThere = best === undefined || typeof value === "number" || value === null;
  check(
    isThere,
    "BAD_ARGUMENT",
    where,
    () =>
      `keep.best chooses by the number values.${best!.value}, got ${show(value)} among ${show(Object.keys(values))}.`,
    "Save it with each step, null where it is not known.",
  );
  return retention;
}

/** `steps`, oldest first, less those that stay. */
export async function stepsToRemove(
  fileSystem: FileSystem,
  steps: readonly Step[],
  { newest = 1, every, best }: Retention,
): Promise<Step[]> {
  const kept = new Set(steps.slice(-newest).map(({ step }) => step));
  if (every !== undefined) for (const { step } of steps) if (step % every === 0) kept.add(step);
  if (best !== undefined)
    for (const { step } of (await bestFirst(fileSystem, steps, best)).slice(0, best.count ?? 1)) kept.add(step);
  return steps.filter(({ step }) => !kept.has(step));
}
