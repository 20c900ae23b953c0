/** Checks of plain arguments. */
import { checkValue } from "@opt/core";

/** Whole numbers of at least 1. @throws OptError BAD_ARGUMENT */
export function checkExtents(where: string, extents: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(extents))
    checkValue(Number.isInteger(value) && value >= 1, where, name, "an integer >= 1", value);
}
