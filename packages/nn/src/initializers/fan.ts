/** How many numbers meet in one output, and how many outputs one input reaches. */
import { check, type Shape } from "@opt/core";

export type Fan = "in" | "out";

/** For weights [out, in, ...window]: each fan counts the window. @throws OptError BAD_SHAPE below two axes */
export function fanOf(where: string, shape: Shape): Record<Fan, number> {
  const [out, input, ...window] = shape;
  check(
    out !== undefined && input !== undefined,
    "BAD_SHAPE",
    where,
    () => `the fan needs a weight [out, in, ...], got shape [${shape}].`,
    "Use uniform or normal for vectors.",
  );
  const area = window.reduce((product, extent) => product * extent, 1);
  return { in: input * area, out: out * area };
}
