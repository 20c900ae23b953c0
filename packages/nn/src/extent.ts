import { OptError } from "@opt/core";

/** Sizes of layers are positive integers. @throws OptError BAD_ARGUMENT */
export function checkExtents(where: string, extents: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(extents)) {
    if (!Number.isInteger(value) || value < 1) {
      throw new OptError("BAD_ARGUMENT", where, `${name} must be an integer >= 1, got ${value}.`, "For example 32.");
    }
  }
}
