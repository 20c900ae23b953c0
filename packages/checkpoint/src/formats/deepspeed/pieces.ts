/** Ranges of a tensor's elements, row-major, as boxes: ZeRO cuts tensors anywhere. */
import { bytesPerElement } from "../../format/dtype";
import type { SourceBox } from "../../format/source";
import type { Box } from "../../layout/box";
import { boxOf, type ForeignTensor } from "../bytes/foreign-tensor";
import { partOf } from "../bytes/source";

/** The fewest boxes that together are a range, in its order: the rest of a row, whole rows, the beginning of a row, and so in each dimension. */
export function* boxesOfRange(shape: readonly number[], begin: number, end: number): Generator<Box> {
  for (let at = begin; at < end; ) {
    let [d, row] = [shape.length - 1, 1];
    while (d > 0 && at % (row * shape[d]!) === 0 && at + row * shape[d]! <= end) row *= shape[d--]!;
    const offset = shape.map(() => 0);
    for (let i = shape.length - 1, rest = at; i >= 0; i--) {
      offset[i] = rest % shape[i]!;
      rest = Math.floor(rest / shape[i]!);
    }
    const rows = d < 0 ? 1 : Math.min(shape[d]! - offset[d]!, Math.floor((end - at) / row));
    yield { offset, size: shape.map((length, i) => (i < d ? 1 : i === d ? rows : length)) };
    at += rows * row;
  }
}

/** A flat tensor of one rank, and the number of its first element among all that are laid end to end. */
export interface Piece {
  readonly tensor: ForeignTensor;
  readonly file: string;
  readonly begin: number;
  readonly end: number;
}

/** Flat tensors laid end to end. */
export function laidOut(tensors: readonly Omit<Piece, "begin" | "end">[]): Piece[] {
  let end = 0;
  return tensors.map(({ tensor, file }) => {
    const begin = end;
    end += tensor.shape.reduce((count, length) => count * length, 1);
    return { tensor, file, begin, end };
  });
}

/** The boxes of a tensor's range that begins with its element `at`, and is in the pieces from `begin` to `end`. */
export function* boxesIn(
  pieces: readonly Piece[],
  [begin, end]: readonly [number, number],
  at: number,
  shape: readonly number[],
): Generator<SourceBox> {
  for (const { tensor, file, ...piece } of pieces) {
    const from = Math.max(begin, piece.begin);
    const to = Math.min(end, piece.end);
    if (from >= to) continue;
    const width = bytesPerElement(tensor.dtype);
    let place = (from - piece.begin) * width;
    for (const { offset, size } of boxesOfRange(shape, at + from - begin, at + to - begin)) {
      const byteLength = size.reduce((bytes, length) => bytes * length, width);
      yield boxOf({ dtype: tensor.dtype, shape: size, bytes: partOf(tensor.bytes, place, byteLength) }, file, offset);
      place += byteLength;
    }
  }
}
