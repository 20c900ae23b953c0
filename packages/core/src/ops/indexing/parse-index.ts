/** What programs write between PyTorch's brackets: checked, and split into a strided region and index tensors. */

import { isTensor } from "../../device/scope";
import { checkValue } from "../../errors/check-value";
import { check, OptError } from "../../errors/errors";
import { show } from "../../errors/show";
import type { Chosen, PositionRange } from "../../tensor/copy-of";
import type { Tensor } from "../../tensor/tensor";
import { sameShape, showShape } from "../../values/shape";
import { checkDevice } from "../check-device";
import { checkTensor } from "../check-tensor";
import { type Region, rangeWithin, regionOf } from "../shape/region";

/** `[start, end, step]`, of which null and what is missing are the ends of the axis and a step of 1: `start:end:step` of PyTorch. */
export type IndexRange = readonly (number | null | undefined)[];

/**
 * A position, which drops its axis; a range; null, which keeps an axis (`:` of PyTorch); i32 positions; or a boolean mask, which stands
 * for as many axes as it has.
 */
export type Index = number | IndexRange | null | Tensor;

/** What a tensor picks: i32 positions of one axis of the region, or a mask over `mask.shape.length` axes. */
export interface Pick {
  /** The first axis of the region that it is for. */
  readonly axis: number;
  readonly tensor: Tensor;
}

/** First the region is taken, then the picks choose in it: as PyTorch does. */
export interface ParsedIndex {
  readonly region: Region;
  readonly picks: readonly Pick[];
}

/** @throws OptError BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH, DISPOSED */
export function parseIndex(where: string, x: Tensor, index: readonly Index[]): ParsedIndex {
  checkTensor(where, x);
  const { shape } = x;
  const [chosen, picks]: [Chosen[], Pick[]] = [[], []];
  const kept = () => chosen.filter((choice) => typeof choice !== "number").length;
  for (const item of index) {
    const axis = chosen.length;
    const covered = isMask(item) ? item.shape.length : 1;
    check(
      axis + covered <= shape.length,
      "BAD_ARGUMENT",
      where,
      () => `takes an index for each of ${shape.length} axes at most, got ${show(index)}.`,
      `x is ${showShape(shape)}.`,
    );
    if (typeof item === "object" && item !== null && isTensor in item) {
      picks.push({ axis: kept(), tensor: checkedPick(where, x, axis, item as Tensor) });
      for (let i = 0; i < covered; i++) chosen.push(null);
    } else chosen.push(item === null ? null : checkedChoice(where, shape[axis]!, item as number | IndexRange));
  }
  return { region: regionOf(shape, [...chosen, ...shape.slice(chosen.length).map(() => null)]), picks };
}

const isMask = (item: Index): item is Tensor =>
  typeof item === "object" && item !== null && isTensor in item && (item as Tensor).dtype === "bool";

function checkedChoice(where: string, extent: number, item: number | IndexRange): Exclude<Chosen, null> {
  if (Array.isArray(item)) return checkedRange(where, extent, item);
  checkValue(
    Number.isInteger(item) && (item as number) >= -extent && (item as number) < extent,
    where,
    "index",
    `an integer from ${-extent} to ${extent - 1}`,
    item,
    "[start, end, step] is a range, null keeps an axis, and tensors are i32 or bool.",
  );
  const position = item as number;
  return position < 0 ? position + extent : position;
}

function checkedRange(where: string, extent: number, range: IndexRange): PositionRange {
  const isRange =
    range.length <= 3 && range.every((each) => each === null || each === undefined || Number.isInteger(each));
  checkValue(
    isRange,
    where,
    "a range",
    "[start, end, step] of integers",
    range,
    "[1] is from 1 on, [null, -1] all but the last.",
  );
  const [start, end, step] = range.map((each) => each ?? undefined);
  const isPositive = step === undefined || step > 0;
  checkValue(isPositive, where, "a step", "1 or more", step, "flip(x, axis) reverses an axis.");
  return rangeWithin(extent, start, end, step);
}

function checkedPick(where: string, x: Tensor, axis: number, tensor: Tensor): Tensor {
  checkTensor(where, tensor, "an index");
  checkDevice(where, [x, tensor]);
  const { dtype, shape } = tensor;
  if (dtype === "i32") return tensor;
  const problem = `index tensors must be i32 positions or boolean masks, got ${dtype}.`;
  if (dtype !== "bool") throw new OptError("BAD_DTYPE", where, problem, 'Cast with to("i32"), or compare: x.ne(0).');
  check(
    shape.length > 0 && sameShape(shape, x.shape.slice(axis, axis + shape.length)),
    "BAD_SHAPE",
    where,
    () =>
      `a mask must have the extents of the axes that it is for, got ${showShape(shape)} for ${showShape(x.shape)} from axis ${axis} on.`,
    "Slice or expand the mask.",
  );
  return tensor;
}
