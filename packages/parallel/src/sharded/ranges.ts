/** How a group's parameters are cut for ZeRO-1: they lie one behind the other, and each rank owns a range of that row, not whole parameters. */
import type { Tensor } from "@opt/core";

/** Parameters and cuts lie at multiples of so many elements: 256 bytes of float32, where every device can begin. */
const ALIGNMENT = 64;

/** A rank's part of a parameter: elements [begin, end), perhaps none. */
export interface Range {
  readonly begin: number;
  readonly end: number;
}

/** @returns of each parameter the ranges of all ranks */
export function rangesOf(parameters: readonly Tensor[], ranks: number): Range[][] {
  const blocks = parameters.map(({ size }) => Math.ceil(size / ALIGNMENT));
  const total = blocks.reduce((a, b) => a + b, 0);
  const cut = (rank: number) => Math.floor((total * rank) / ranks);
  let first = 0;
  return parameters.map(({ size }, i) => {
    const at = (block: number) => Math.min(size, Math.max(0, block - first) * ALIGNMENT);
    const ranges = Array.from({ length: ranks }, (_, rank) => ({ begin: at(cut(rank)), end: at(cut(rank + 1)) }));
    first += blocks[i]!;
    return ranges;
  });
}
