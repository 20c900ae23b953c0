/** Parameters in blocks: each block has preconditioners of its own, so that none is larger than a block's side. */
import { concat, type Shape, split, type Tensor } from "@opt/core";

/** Lengths of the pieces of a side. */
function lengthsOf(extent: number, blockSize: number): number[] {
  const count = Math.max(1, Math.ceil(extent / blockSize));
  return Array.from({ length: count }, (_, i) => Math.min(blockSize, extent - i * blockSize));
}

/** The shapes of a parameter's blocks, the last side running fastest. */
export function blockShapes(shape: Shape, blockSize: number): Shape[] {
  return shape.reduce<number[][]>(
    (blocks, extent) => blocks.flatMap((block) => lengthsOf(extent, blockSize).map((length) => [...block, length])),
    [[]],
  );
}

/** The blocks of a tensor, in the order of `blockShapes`. */
export function blocksOf(x: Tensor, blockSize: number): Tensor[] {
  return x.shape.reduce<Tensor[]>(
    (blocks, extent, side) =>
      extent <= blockSize ? blocks : blocks.flatMap((block) => split(block, lengthsOf(extent, blockSize), side)),
    [x],
  );
}

/** The tensor of this shape whose `blocksOf` these are. */
export function joined(blocks: readonly Tensor[], shape: Shape, blockSize: number): Tensor {
  const whole = shape.reduceRight<readonly Tensor[]>((pieces, extent, side) => {
    const count = lengthsOf(extent, blockSize).length;
    if (count === 1) return pieces;
    return Array.from({ length: pieces.length / count }, (_, i) =>
      concat(pieces.slice(i * count, (i + 1) * count), side),
    );
  }, blocks);
  return whole[0]!;
}
