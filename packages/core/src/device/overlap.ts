/** Launches in place whose inputs overlap what they write: the inputs are copied first, so every device behaves as memmove. */
import type { Memory, Slice } from "../backend/memory";
import type { Launch } from "../backend/spec";
import { byteSize, type NumberDType, type TypedArray } from "../values/dtype";
import { denseStrides, type Shape } from "../values/shape";
import { isDense, reach } from "../values/strides";

/** The arrays of programs that memory wraps. Two of them may be parts of one buffer. */
export type WrappedArrays = WeakMap<Memory, TypedArray>;

/** Bytes from `start` to `end` of a memory, or of the buffer that it wraps. */
interface Range {
  readonly owner: object;
  readonly start: number;
  readonly end: number;
}

/** Elements that a launch reads, which it would overwrite before. */
export interface Overlapped {
  readonly slice: Slice;
  readonly dtype: NumberDType;
  readonly shape: Shape;
  readonly strides: readonly number[];
  /** The launch writes them in another memory, which wraps the same buffer. */
  readonly isAliased: boolean;
  /** The same launch, which reads a dense copy of them. */
  reading(copy: Slice): Launch;
}

/** The input that a launch would read after it has overwritten a part of it, if it has one. Looks at the kinds that core launches in place. */
export function overlapped(launch: Launch, wrapped: WrappedArrays | undefined): Overlapped | undefined {
  switch (launch.kind) {
    case "copy":
      return overlappedSource(launch, wrapped);
    case "map":
      return overlappedInput(launch, wrapped);
    default:
      return undefined;
  }
}

function overlappedSource(launch: Launch<"copy">, wrapped: WrappedArrays | undefined): Overlapped | undefined {
  const { source, target, shape, sourceStrides, targetStrides, kernel } = launch;
  if (source.memory !== target.memory && wrapped === undefined) return undefined;
  const { from, to } = kernel.spec;
  const read = rangeOf(source, from, wrapped, reach(shape, sourceStrides));
  const written = rangeOf(target, to, wrapped, reach(shape, targetStrides));
  if (!intersect(read, written)) return undefined;
  const isItself = from === to && read.start === written.start && isSameWalk(shape, sourceStrides, targetStrides);
  if (isItself) return undefined;
  const strides = denseStrides(shape);
  const reading = (copy: Slice): Launch => ({ ...launch, source: copy, sourceStrides: strides });
  const isAliased = source.memory !== target.memory;
  return { slice: source, dtype: from, shape, strides: sourceStrides, isAliased, reading };
}

function overlappedInput(launch: Launch<"map">, wrapped: WrappedArrays | undefined): Overlapped | undefined {
  const { inputs, output, shape, strides } = launch;
  const { dtype } = launch.kernel.spec;
  for (let i = 0; i < inputs.length; i++) {
    const input = inputs[i]!;
    if (input.memory !== output.memory && wrapped === undefined) continue;
    const [read, written] = [rangeOf(input, dtype, wrapped), rangeOf(output, dtype, wrapped)];
    if (!intersect(read, written) || (read.start === written.start && isDense(shape, strides[i]!))) continue;
    const reading = (copy: Slice): Launch => ({ ...launch, inputs: inputs.with(i, copy) });
    const isAliased = input.memory !== output.memory;
    return { slice: input, dtype, shape: [input.length], strides: [1], isAliased, reading };
  }
  return undefined;
}

/** @param reached elements before and from the first one on; by default those of the slice */
function rangeOf(
  { memory, byteOffset, length }: Slice,
  dtype: NumberDType,
  wrapped: WrappedArrays | undefined,
  reached = { before: 0, after: length },
): Range {
  const array = wrapped?.get(memory);
  const first = byteOffset + (array?.byteOffset ?? 0);
  const bytes = byteSize(dtype);
  return { owner: array?.buffer ?? memory, start: first - reached.before * bytes, end: first + reached.after * bytes };
}

/** The slices that a launch writes, by the memory that they are in. */
export class WrittenSlices {
  readonly #ranges = new Map<object, { readonly slice: Slice; readonly range: Range }[]>();

  constructor(
    written: readonly Slice[],
    private readonly dtype: NumberDType,
    private readonly wrapped: WrappedArrays | undefined,
  ) {
    for (const slice of written) {
      const range = rangeOf(slice, dtype, wrapped);
      const known = this.#ranges.get(range.owner);
      if (known === undefined) this.#ranges.set(range.owner, [{ slice, range }]);
      else known.push({ slice, range });
    }
  }

  /** True if another of them shares elements with this one. */
  overlaps(slice: Slice): boolean {
    const range = rangeOf(slice, this.dtype, this.wrapped);
    const near = this.#ranges.get(range.owner) ?? [];
    return near.some((other) => other.slice !== slice && intersect(range, other.range));
  }
}

function intersect(a: Range, b: Range): boolean {
  return a.owner === b.owner && a.start < b.end && b.start < a.end;
}

function isSameWalk(shape: Shape, a: readonly number[], b: readonly number[]): boolean {
  return shape.every((extent, axis) => extent === 1 || a[axis] === b[axis]);
}
