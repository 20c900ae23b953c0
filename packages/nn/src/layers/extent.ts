import { check, show } from "@opt/core";

/** Sizes of layers are positive integers. @throws OptError BAD_ARGUMENT */
export function checkExtents(where: string, extents: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(extents)) {
    const fits = Number.isInteger(value) && value >= 1;
    check(fits, "BAD_ARGUMENT", where, () => `${name} must be an integer >= 1, got ${show(value)}.`, "For example 32.");
  }
}
