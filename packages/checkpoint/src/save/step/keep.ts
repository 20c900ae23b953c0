/** Which steps are to stay, as the user says it. */
import { check, checkOptions, show } from "@opt/core";
import type { Json } from "../../format/source";

/** A step stays if any of these says so; the newest one always does. */
export interface Retention {
  /** How many of the newest steps stay. */
  readonly newest?: number;
  /** Steps whose number is a multiple of this stay. */
  readonly every?: number;
  /** The `count` (1) steps stay whose plain value of this name is least; with `highest`, greatest. Every save has it: null where it is not known. */
  readonly best?: { readonly value: string; readonly count?: number; readonly highest?: boolean };
}

/** Throws BAD_ARGUMENT. A number is how many of the newest stay. @param values of the step that is saved */
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
  const counts = { keep: newest, "keep.every": every, "keep.best.count": best?.count };
  for (const [name, count] of Object.entries(counts)) {
    const isCount = count === undefined || (Number.isSafeInteger(count) && count >= 1);
    check(isCount, "BAD_ARGUMENT", where, () => `${name} must be at least 1, got ${count}.`);
  }
  const isSaid = best === undefined || typeof best.value === "string";
  check(isSaid, "BAD_ARGUMENT", where, () => "keep.best must name a value.", 'For example { value: "loss" }.');
  const value = best && values[best.value];
  const isThere = best === undefined || typeof value === "number" || value === null;
  const lacking = () =>
    `keep.best chooses by the number values.${best!.value}, got ${show(value)} among ${show(Object.keys(values))}.`;
  check(isThere, "BAD_ARGUMENT", where, lacking, "Save it with each step, null where it is not known.");
  return retention;
}
