/** Checks that several functions share. */
import { check, show } from "@opt/core";

/** @throws OptError BAD_ARGUMENT unless each option that is given is a whole number from `least` on */
export function checkCounts(where: string, counts: Readonly<Record<string, unknown>>, least = 1): void {
  for (const [name, value] of Object.entries(counts)) {
    const isCount = value === undefined || (Number.isSafeInteger(value) && (value as number) >= least);
    check(isCount, "BAD_ARGUMENT", where, () => `${name} must be a whole number from ${least} on, got ${show(value)}.`);
  }
}

/** @throws OptError BAD_ARGUMENT unless it is a text. @param what "folder" or "path" */
export function checkPlace(where: string, what: string, value: unknown): void {
  const isPlace = typeof value === "string" && value !== "";
  check(isPlace, "BAD_ARGUMENT", where, () => `needs a ${what}, got ${show(value)}.`);
}
