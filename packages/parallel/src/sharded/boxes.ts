/** A range of a tensor's elements, row-major, as boxes: what checkpoints store. */
import type { Box, PartialTensor } from "@opt/checkpoint";

/** At most two for each dimension: their elements, one box after the other, are those of the range. */
export function boxesOfRange(shape: readonly number[], begin: number, end: number): Box[] {
  if (begin >= end) return [];
  const [rows, ...row] = shape;
  if (rows === undefined) return [{ offset: [], size: [] }];
  const length = row.reduce((a, b) => a * b, 1);
  const inside = (index: number, from: number, to: number) =>
    boxesOfRange(row, from, to).map(({ offset, size }) => ({ offset: [index, ...offset], size: [1, ...size] }));
  const [first, last] = [Math.ceil(begin / length), Math.floor(end / length)];
  if (first > last) return inside(last, begin - last * length, end - last * length);
  const whole = { offset: [first, ...row.map(() => 0)], size: [last - first, ...row] };
  return [
    ...inside(first - 1, begin - (first - 1) * length, begin < first * length ? length : 0),
    ...(first < last ? [whole] : []),
    ...inside(last, 0, end - last * length),
  ];
}

/** Boxes with their elements, which lie one box after the other. */
export function filled(boxes: readonly Box[], data: Uint8Array, width: number): PartialTensor["boxes"] {
  let at = 0;
  return boxes.map((box) => {
    const begin = at;
    at += box.size.reduce((a, b) => a * b, width);
    return { ...box, data: data.subarray(begin, at) };
  });
}
