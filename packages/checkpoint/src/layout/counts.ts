/** Whole numbers from 0: lengths, offsets, ranks, steps. */
import { check } from "@opt/core";

export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** @throws OptError BAD_ARGUMENT for what is no step's number */
export function checkedStep(where: string, step: unknown): number {
  check(
    isCount(step),
    "BAD_ARGUMENT",
    where,
    () => `step must be a whole number from 0, got ${step}.`,
    "Count from 0.",
  );
  return step;
}
