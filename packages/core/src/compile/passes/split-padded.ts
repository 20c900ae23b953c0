/**
 * Sums of parts that zeros fill up, such as the gradients of slices: each stretch of the sum reads the part that is there, and a number
 * for the others. No filled memory is made.
 */
import type { Slice } from "../../backend/memory";
import type { Launch } from "../../backend/spec";
import { Expression } from "../../rule/expression";
import { trace } from "../../rule/program";
import { byteSize } from "../../values/dtype";
import { sizeOf } from "../../values/shape";
import { isDense } from "../../values/strides";
import type { Step } from "../steps";
import { expressionOf } from "./expression-of";
import type { MapKernels } from "./fuse-maps";
import { joinParts, type PaddedMemory } from "./join-parts";
import { isSameSlice } from "./layout";
import type { Uses } from "./uses";

export function splitPadded(uses: Uses, kernels: MapKernels): Step[] {
  // First of all, as a part may itself be a sum that is split.
  forEachSum(uses, (sum, index, padded) => joinParts(sum, index, padded, uses, kernels));
  const split = new Map<number, readonly Step[]>();
  forEachSum(uses, (sum, index, padded) => {
    const launches = stretchesOf(sum, padded, kernels);
    split.set(
      index,
      launches.map((launch) => ({ kind: "launch", launch, scalarSource: undefined })),
    );
    for (const one of padded) for (const step of one?.steps ?? []) uses.replace(step, null);
  });
  return Array.from({ length: uses.length }, (_, index) => split.get(index) ?? uses.at(index) ?? []).flat();
}

/** The elementwise programs with inputs that are filled up. */
function forEachSum(
  uses: Uses,
  visit: (sum: Launch<"map">, index: number, padded: readonly (PaddedMemory | undefined)[]) => void,
): void {
  for (let index = 0; index < uses.length; index++) {
    const sum = uses.launch("map", index);
    if (!sum?.inputs.every((_, i) => isDense(sum.shape, sum.strides[i]!))) continue;
    const padded = sum.inputs.map((input) => paddedAt(input, index, sum, uses));
    if (padded.some((one) => one !== undefined)) visit(sum, index, padded);
  }
}

/** How an input is filled up; undefined if it is not. */
function paddedAt(
  input: Slice,
  reader: number,
  { kernel, shape }: Launch<"map">,
  uses: Uses,
): PaddedMemory | undefined {
  const { memory } = input;
  const [first, second, ...more] = uses.writers(memory).sort((a, b) => a - b);
  if (!uses.temporaries.has(memory) || second === undefined || more.length > 0 || second > reader) return undefined;
  const [fill, copy] = [uses.launch("map", first!), uses.launch("copy", second)];
  if (fill === undefined || copy === undefined || uses.readers(memory).length > 1) return undefined;
  const { source, target, kernel: copying } = copy;
  const { dtype } = kernel.spec;
  const isPlain = copying.spec.from === dtype && copying.spec.to === dtype;
  const isRow = isDense(copy.shape, copy.sourceStrides) && isDense(copy.shape, copy.targetStrides);
  const isWhole = isSameSlice(fill.output, input) && sizeOf(shape) === input.length;
  const isNumber = fill.kernel.spec.program.nodes[0]!.op === "scalar" && fill.inputs.length === 0;
  if (!isPlain || !isRow || !isWhole || !isNumber || fill.kernel.spec.program.nodes.length > 1) return undefined;
  if (uses.isWrittenBetween(source.memory, second, reader) || uses.hasHostBetween(first!, reader)) return undefined;
  const begin = (target.byteOffset - input.byteOffset) / byteSize(dtype);
  const end = begin + sizeOf(copy.shape);
  return { value: fill.scalars[0]!, part: source, begin, end, steps: [first!, second] };
}

/** The sum in stretches, in each of which every padded input is the part or the number. */
function stretchesOf(
  sum: Launch<"map">,
  padded: readonly (PaddedMemory | undefined)[],
  kernels: MapKernels,
): Launch<"map">[] {
  const { program, dtype } = sum.kernel.spec;
  const size = sizeOf(sum.shape);
  const cuts = [0, size, ...padded.flatMap((one) => (one === undefined ? [] : [one.begin, one.end]))];
  const ends = [...new Set(cuts)].sort((a, b) => a - b);
  return ends.slice(1).map((end, i) => {
    const begin = ends[i]!;
    const inputs: Slice[] = [];
    const scalars = [...sum.scalars];
    const cut = (slice: Slice, from: number): Slice => ({
      ...slice,
      byteOffset: slice.byteOffset + from * byteSize(dtype),
      length: end - begin,
    });
    const buffers = sum.inputs.map((input, slot) => {
      const one = padded[slot];
      if (one !== undefined && (begin < one.begin || begin >= one.end))
        return new Expression("scalar", [], scalars.push(one.value) - 1);
      const read = one === undefined ? cut(input, begin) : cut(one.part, begin - one.begin);
      return new Expression("buffer", [], inputs.push(read) - 1);
    });
    const expression = expressionOf(program, buffers, (slot) => new Expression("scalar", [], slot));
    const names = (list: readonly unknown[], letter: string) => list.map((_, slot) => `${letter}${slot}`);
    const stretch = trace(names(inputs, "b"), names(scalars, "s"), [{ slot: 0, expression }]);
    return {
      ...sum,
      kernel: kernels(stretch, dtype),
      inputs,
      output: cut(sum.output, begin),
      scalars,
      shape: [end - begin],
      strides: inputs.map(() => [1]),
    };
  });
}
