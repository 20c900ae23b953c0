/** Copies where PyTorch has views: marked when they are made, and checked before they are written. */
import { OptError } from "../errors/errors";
import { type Chosen, type CopyOf, type Part, partOf, permuted, whole, writingLine } from "./copy-of";
import type { Tensor } from "./tensor";

/** Marks a copy of the part of `source` that `chosen` chooses. */
export function markPart(op: string, copy: Tensor, source: Tensor, chosen: readonly Chosen[]): Tensor {
  const outer = partOfSource(source);
  return mark(op, copy, source, outer && partOf(outer, source.shape, chosen));
}

/** Marks a copy of `source` with its axes in another order. */
export function markPermuted(op: string, copy: Tensor, source: Tensor, order: readonly number[]): Tensor {
  const outer = partOfSource(source);
  return mark(op, copy, source, outer && permuted(outer, order));
}

/** Marks a copy that no index chooses, as of a tensor that was stretched. */
export function markCopy(op: string, copy: Tensor, source: Tensor): Tensor {
  return mark(op, copy, source, undefined);
}

function mark(op: string, copy: Tensor, source: Tensor, part: Part | undefined): Tensor {
  const known = presentMark(source);
  copy.storage.copyOf = { op, source: known?.source ?? source.storage.life, shape: copy.shape, part };
  return copy;
}

/** A reshaped part has other axes than the one that was copied. */
function partOfSource(source: Tensor): Part | undefined {
  const known = presentMark(source);
  if (known === null) return whole(source.shape);
  return String(known.shape) === String(source.shape) ? known.part : undefined;
}

/** The mark, as long as what was copied is there. */
function presentMark({ storage }: Tensor): CopyOf | null {
  const { copyOf } = storage;
  return copyOf === null || copyOf.source.isOver ? null : copyOf;
}

/** Checks that steps of an optimizer reach what its user means. @throws OptError BAD_STATE, as `checkWritable` */
export function checkSteppable(where: string, parameter: Tensor): void {
  const mark = presentMark(parameter);
  if (mark === null) return;
  const problem = `steps must reach the tensor that they are meant for, got the result of ${mark.op}, which is a copy.`;
  const cure = "Train a clone() of it, or span(x, begin, end), which shares x's memory.";
  throw new OptError("BAD_STATE", where, problem, cure);
}

/** Forgets what a tensor was copied from. */
export function unmark({ storage }: Tensor): void {
  storage.copyOf = null;
}

const LONGEST = 60;

/**
 * Checks that a write reaches what its writer means.
 *
 * @param value what would be written
 * @throws OptError BAD_STATE for a copy where PyTorch has a view, as long as what was copied is there
 */
export function checkWritable(where: string, target: Tensor, value?: unknown): void {
  const mark = presentMark(target);
  if (mark === null) return;
  const line = writingLine(mark, textOf(value), target.shape);
  const problem = `a write must reach the tensor that it is meant for, got the result of ${mark.op}, which is a copy.`;
  const cure = line === undefined ? "Write into what was copied, by x.assign(index, value)." : `Write ${line}.`;
  throw new OptError("BAD_STATE", where, problem, `${cure} For a copy of its own, take clone().`);
}

/** Numbers as the program has them, if they are short. */
function textOf(value: unknown): string {
  const isData = typeof value === "number" || typeof value === "boolean" || Array.isArray(value);
  const text = isData ? JSON.stringify(value).replaceAll(",", ", ") : "value";
  return text.length > LONGEST ? "value" : text;
}
