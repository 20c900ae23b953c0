/** Parts that PyTorch has as views and Opt copies: what they are a part of, so that a write into one is an error that shows the right line. */
import { type Shape, sizeOf } from "../values/shape";

/** Every `step`-th position from `start` on, `length` of them. */
export interface PositionRange {
  readonly start: number;
  readonly step: number;
  readonly length: number;
}

/** For an axis: one position, without the axis; some of them; or null for all. */
export type Chosen = number | PositionRange | null;

export interface CopyOf {
  /** The method that made the copy. */
  readonly op: string;
  /** Of the memory that was copied: once it is over, nobody misses the write. */
  readonly source: { readonly isOver: boolean };
  readonly shape: Shape;
  /** What it is of the tensor that was copied first, and the axes of that in the copy's order. undefined: no index chooses it. */
  readonly part: Part | undefined;
}

/** `x.at(...)` with its axes in another order. */
export interface Part {
  readonly chosen: readonly Chosen[];
  readonly axes: readonly number[];
}

/** All of a tensor. */
export function whole(shape: Shape): Part {
  return { chosen: shape.map(() => null), axes: shape.map((_, axis) => axis) };
}

/** A part of a part. @param inner for each axis of the outer one */
export function partOf(outer: Part, shape: Shape, inner: readonly Chosen[]): Part {
  const chosen = [...outer.chosen];
  const axes: number[] = [];
  for (const [i, choice] of inner.entries()) {
    const axis = outer.axes[i]!;
    const { start, step } = (chosen[axis] as PositionRange | null) ?? { start: 0, step: 1 };
    if (typeof choice === "number") chosen[axis] = start + choice * step;
    else {
      axes.push(axis);
      if (choice === null || isAll(choice, shape[i]!)) continue;
      chosen[axis] = { start: start + choice.start * step, step: step * choice.step, length: choice.length };
    }
  }
  return { chosen, axes };
}

const isAll = ({ start, step, length }: PositionRange, extent: number) =>
  start === 0 && step === 1 && length === extent;

/** A part with its axes in another order. */
export function permuted({ chosen, axes }: Part, order: readonly number[]): Part {
  return { chosen, axes: order.map((axis) => axes[axis]!) };
}

/** The call that writes `value` (as text, for a tensor of `shape`) into what was copied. */
export function writingLine({ part, shape: copied }: CopyOf, value: string, shape: Shape): string | undefined {
  if (part === undefined || sizeOf(shape) !== sizeOf(copied)) return undefined;
  const { chosen, axes } = part;
  const isReshaped = shape.length !== copied.length || shape.some((extent, i) => extent !== copied[i]);
  const order = axes.map((_, i) => axes.indexOf(axes.toSorted((a, b) => a - b)[i]!));
  const isSorted = order.every((axis, i) => axis === i);
  const given = [
    isReshaped || !isSorted ? "value" : value,
    isReshaped ? `.reshape([${copied.join(", ")}])` : "",
    isSorted ? "" : `.permute([${order.join(", ")}])`,
  ].join("");
  const last = chosen.findLastIndex((choice) => choice !== null);
  const index = chosen.slice(0, last + 1).map(textOf);
  return last < 0 ? `x.set(${given})` : `x.assign([${index.join(", ")}], ${given})`;
}

function textOf(choice: Chosen): string {
  if (choice === null || typeof choice === "number") return String(choice);
  const { start, step, length } = choice;
  const end = length === 0 ? start : start + (length - 1) * step + 1;
  return `[${start}, ${end}${step === 1 || length < 2 ? "" : `, ${step}`}]`;
}
