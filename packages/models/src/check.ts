/** Checks of plain arguments, and what is thrown in many places. */
import { checkValue, OptError } from "@opt/core";

/** @throws OptError UNSUPPORTED */
export function unsupported(where: string, problem: string, cure = "Choose a model of another kind."): never {
  throw new OptError("UNSUPPORTED", where, problem, cure);
}

/** Whole numbers of at least 1. @throws OptError BAD_ARGUMENT */
export function checkExtents(where: string, extents: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(extents))
    checkValue(Number.isInteger(value) && value >= 1, where, name, "an integer >= 1", value);
}
