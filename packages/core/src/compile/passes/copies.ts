/** Plain copies of a whole range fall out: who reads the copy reads the original. */
import { slicesIn, withSlices } from "../../backend/launches";
import type { Slice } from "../../backend/memory";
import type { Launch } from "../../backend/spec";
import { byteSize } from "../../values/dtype";
import { sizeOf } from "../../values/shape";
import { isDense } from "../../values/strides";
import type { Uses } from "./uses";

export function removeCopies(uses: Uses): void {
  for (let index = 0; index < uses.length; index++) {
    const copy = uses.launch("copy", index);
    if (copy !== undefined && isPlain(copy)) remove(copy, index, uses);
  }
}

function remove({ source, target, shape, kernel }: Launch<"copy">, index: number, uses: Uses): void {
  const readers = uses.readers(target.memory);
  const isOnlyWriter = uses.writers(target.memory).length === 1;
  if (!uses.temporaries.has(target.memory) || !isOnlyWriter || source.memory === target.memory) return;
  if (uses.isWrittenBetween(source.memory, index, (readers.at(-1) ?? index) + 1)) return;
  const bytes = sizeOf(shape) * byteSize(kernel.spec.to);
  const isInside = ({ byteOffset }: Slice) =>
    byteOffset >= target.byteOffset && byteOffset < target.byteOffset + Math.max(bytes, 1);
  const steps = readers.map((reader) => uses.at(reader));
  const read = steps.filter((step) => step?.kind === "launch");
  if (read.length < steps.length) return;
  if (!read.every(({ launch }) => slicesIn(launch, target.memory).every(isInside))) return;
  const original = (slice: Slice): Slice =>
    slice.memory === target.memory
      ? { ...slice, memory: source.memory, byteOffset: source.byteOffset + slice.byteOffset - target.byteOffset }
      : slice;
  readers.forEach((reader, i) => {
    uses.replace(reader, { ...read[i]!, launch: withSlices(read[i]!.launch, original) });
  });
  uses.replace(index, null);
}

function isPlain({ kernel, shape, sourceStrides, targetStrides }: Launch<"copy">): boolean {
  const { from, to } = kernel.spec;
  return from === to && isDense(shape, sourceStrides) && isDense(shape, targetStrides);
}
