/** Axes cut into parts, for pools that are asked for a number of results. */
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import type { Tensor } from "../../tensor/tensor";
import { showShape } from "../../values/shape";
import { MOST_PLACES } from "./windows";

/** How many parts along each axis of images: one number for both, or one for each, of which null keeps the extent. */
export type OutputSize2d = number | readonly [number | null, number | null];

/** How many parts along each axis of images. @throws OptError BAD_ARGUMENT; UNSUPPORTED for more than 2^24 */
export function outputSizeOf(where: string, x: Tensor, outputSize: OutputSize2d): [rows: number, columns: number] {
  const both: readonly unknown[] = Array.isArray(outputSize) ? outputSize : [outputSize, outputSize];
  checkValue(
    both.length === 2 && both.every((n) => n === null || (Number.isInteger(n) && (n as number) >= 1)),
    where,
    "outputSize",
    "an integer >= 1 or a pair of them or null",
    outputSize,
    "For example 1 or [4, null].",
  );
  const [rows, columns] = both.map((n, axis) => (n as number | null) ?? x.shape[2 + axis]!) as [number, number];
  check(
    rows * columns <= MOST_PLACES,
    "UNSUPPORTED",
    where,
    () => `there are at most ${MOST_PLACES} parts, got ${showShape([rows, columns])}.`,
    "Pool to fewer.",
  );
  return [rows, columns];
}

/** Part i of an axis begins at floor(i size / count) and ends before ceil((i + 1) size / count): parts overlap where they must. */
export function partsOf(size: number, count: number) {
  const from = (part: number) => Math.floor((part * size) / count);
  const to = (part: number) => Math.ceil(((part + 1) * size) / count);
  let most = 0;
  for (let part = 0; part < count; part++) most = Math.max(most, to(part) - from(part));
  return {
    /** How many elements the longest part has. */
    most,
    /** The position of an element of a part; -1 beyond its end. */
    at: (part: number, tap: number) => (from(part) + tap < to(part) ? from(part) + tap : -1),
    last: (part: number) => to(part) - 1,
  };
}
