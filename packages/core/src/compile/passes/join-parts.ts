/** A sum of parts that fill a whole, each padded with zeros: the parts are computed in their places, and 0 is added to all of them at once. */
import { slicesIn, withSlices } from "../../backend/launches";
import type { Slice } from "../../backend/memory";
import type { Launch } from "../../backend/spec";
import { Expression } from "../../rule/expression";
import { trace } from "../../rule/program";
import { add } from "../../rule/symbols";
import { byteSize } from "../../values/dtype";
import { sizeOf } from "../../values/shape";
import { isDense } from "../../values/strides";
import type { MapKernels } from "./fuse-maps";
import { isSameSlice } from "./layout";
import type { Uses } from "./uses";

/** Memory that holds `value`, but for a part of its elements. */
export interface PaddedMemory {
  readonly value: number;
  readonly part: Slice;
  readonly begin: number;
  readonly end: number;
  /** The steps that make it. */
  readonly steps: readonly number[];
}

/** Not nothing: -0 becomes 0, as in the sum. */
const ADD_ZERO = trace(
  ["b0"],
  ["s0"],
  [{ slot: 0, expression: add(new Expression("buffer", [], 0), new Expression("scalar", [], 0)) }],
);

export function joinParts(
  sum: Launch<"map">,
  index: number,
  padded: readonly (PaddedMemory | undefined)[],
  uses: Uses,
  kernels: MapKernels,
): void {
  const { output, kernel } = sum;
  const { program, dtype } = kernel.spec;
  const parts = padded.filter((one) => one !== undefined).sort((a, b) => a.begin - b.begin);
  const size = sizeOf(sum.shape);
  const isWhole = parts.length === padded.length && parts.every(({ begin }, i) => begin === (parts[i - 1]?.end ?? 0));
  // A tree of sums in which each part occurs once.
  const isSum =
    program.nodes.every(({ op }) => op === "buffer" || op === "add") && program.nodes.length === 2 * parts.length - 1;
  if (parts.length < 2 || !isWhole || parts.at(-1)?.end !== size || !isSum) return;
  const makers = parts.map(({ part }) => uses.writers(part.memory)[0]!);
  const isFree = [...uses.readers(output.memory), ...uses.writers(output.memory)].every((step) => step >= index);
  if (!isFree || uses.hasHostBetween(Math.min(...makers), index)) return;
  const isMovable = parts.every(({ value, part, begin, end, steps }, i) => {
    const maker = uses.at(makers[i]!);
    const [reader, ...others] = uses.readers(part.memory);
    const isAlone = uses.writers(part.memory).length === 1 && others.length === 0 && reader === steps[1];
    if (!isAlone || !uses.temporaries.has(part.memory) || !Object.is(value, 0)) return false;
    const isPart = (slice: Slice) => slice.byteOffset === 0 && slice.length === end - begin;
    return maker?.kind === "launch" && slicesIn(maker.launch, part.memory).every(isPart);
  });
  if (!isMovable) return;
  for (const [i, { part, begin, steps }] of parts.entries()) {
    const maker = uses.at(makers[i]!);
    if (maker?.kind !== "launch") continue;
    const byteOffset = output.byteOffset + begin * byteSize(dtype);
    const place = (slice: Slice) =>
      slice.memory === part.memory ? { ...slice, memory: output.memory, byteOffset } : slice;
    uses.replace(makers[i]!, { ...maker, launch: withSlices(maker.launch, place) });
    for (const step of steps) uses.replace(step, null);
  }
  const inPlace = (slice: Slice): Launch<"map"> => ({
    ...sum,
    kernel: kernels(ADD_ZERO, dtype),
    inputs: [slice],
    output: slice,
    scalars: [0],
    shape: [size],
    strides: [[1]],
  });
  const launch = (one: Launch) => ({ kind: "launch", launch: one, scalarSource: undefined }) as const;
  uses.replace(index, launch(inPlace(output)));
  // A copy that follows goes first: those who write the parts may then write them where it does.
  const [next, ...others] = uses.readers(output.memory).filter((reader) => reader !== index);
  const copy = next === undefined || others.length > 0 ? undefined : uses.launch("copy", next);
  if (copy === undefined || !uses.temporaries.has(output.memory) || uses.hasHostBetween(index, next!)) return;
  if (uses.isWrittenBetween(output.memory, index, next!)) return;
  const { source, target, shape, targetStrides, kernel: copying } = copy;
  const isPlain = copying.spec.from === dtype && copying.spec.to === dtype && isDense(shape, targetStrides);
  const touched = [...uses.readers(target.memory), ...uses.writers(target.memory)];
  const isFirst = touched.every((step) => step >= next!);
  const isCovered = isSameSlice(source, output) && sizeOf(shape) === size && uses.temporaries.has(target.memory);
  if (!isPlain || !isFirst || !isCovered) return;
  uses.replace(index, launch(copy));
  uses.replace(next!, launch(inPlace({ ...target, length: size })));
}
