/** How a group's parameters are cut for ZeRO-1: they lie one behind the other, and each rank owns a range of that list, not whole parameters. */

/** Parameters and cuts lie at multiples of so many elements: the blocks of state in 8 bits. */
const ALIGNMENT = 256;

/** A rank's part of a parameter: elements [begin, end), perhaps none. */
export interface Range {
  readonly begin: number;
  readonly end: number;
}

/** @param sizes elements of each parameter. @returns of each the ranges of all ranks */
export function rangesOf(sizes: readonly number[], ranks: number): Range[][] {
  const blocks = sizes.map((size) => Math.ceil(size / ALIGNMENT));
  const total = blocks.reduce((a, b) => a + b, 0);
  const cut = (rank: number) => Math.floor((total * rank) / ranks);
  let first = 0;
  return sizes.map((size, i) => {
    const at = (block: number) => Math.min(size, Math.max(0, block - first) * ALIGNMENT);
    const ranges = Array.from({ length: ranks }, (_, rank) => ({ begin: at(cut(rank)), end: at(cut(rank + 1)) }));
    first += blocks[i]!;
    return ranges;
  });
}
