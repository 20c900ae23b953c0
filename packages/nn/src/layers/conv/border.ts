/** What convolutions see around their images. */
import { check, type PadMode, show } from "@opt/core";

/** How a border is made: zeros, or as `pad` makes it. */
export type PaddingMode = "zeros" | Exclude<PadMode, "constant">;

const MODES: readonly unknown[] = ["zeros", "reflect", "replicate", "circular"] satisfies PaddingMode[];

/** [before, after] of an axis. */
export type Sides = readonly [number, number];

/** @throws OptError BAD_ARGUMENT */
export function checkMode(where: string, mode: unknown): asserts mode is PaddingMode {
  check(
    MODES.includes(mode),
    "BAD_ARGUMENT",
    where,
    () => `paddingMode must be one of ${MODES.map((name) => `"${name}"`).join(", ")}, got ${show(mode)}.`,
    'Use "zeros".',
  );
}

/** Of "same" the result has the extents of the input: where they are not equal, the side behind is the larger one. */
export function sidesOf(
  padding: "same" | "valid" | readonly number[],
  kernel: readonly number[],
  dilation: readonly number[],
): Sides[] {
  return kernel.map((extent, axis) => {
    if (padding === "valid") return [0, 0];
    if (padding !== "same") return [padding[axis]!, padding[axis]!];
    const total = dilation[axis]! * (extent - 1);
    return [Math.floor(total / 2), Math.ceil(total / 2)];
  });
}
