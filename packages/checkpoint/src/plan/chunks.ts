/** Cutting boxes into pieces of memory's size: in order, each one piece of the box's elements or close to it. */
import { type Box, elementsIn } from "../layout/box";

/** The regions, in order, that a tensor is cut into so that none has more than `most` elements. Each is one piece of its elements. */
export function* chunksOf(shape: readonly number[], most: number): Generator<Box> {
  let split = 0;
  let inner = elementsIn({ offset: [], size: shape });
  while (split < shape.length && inner > most) inner /= shape[split++]!;
  if (split === 0) yield { offset: shape.map(() => 0), size: shape };
  else yield* cutAlong(shape, split - 1, Math.max(1, Math.floor(most / inner)));
}

/** The pieces of a region that each lie in `room` bytes of its box, with gaps of at most `gap` bytes. One innermost row must fit. */
export function* nearPieces(box: Box, region: Box, width: number, room: number, gap: number): Generator<Box> {
  const { size } = region;
  let stride = width;
  let span = width;
  for (let d = size.length - 1; d >= 0; stride *= box.size[d--]!) {
    const isNear = size[d] === 1 || stride - span <= gap;
    const whole = (size[d]! - 1) * stride + span;
    if (isNear && whole <= room) {
      span = whole;
      continue;
    }
    const rows = isNear ? Math.max(1, Math.floor((room - span) / stride) + 1) : 1;
    for (const { offset, size: cut } of cutAlong(size, d, rows))
      yield { offset: offset.map((at, i) => at + region.offset[i]!), size: cut };
    return;
  }
  yield region;
}

/** Bytes and things that are read together: so few that what is made for them is collected while it is young. */
const BATCH = 4 << 20;
const MOST = 256;

/** Small things that follow each other, together, up to `most` bytes; a larger one on its own. */
export function* inBatches<T>(items: Iterable<T>, bytesOf: (item: T) => number, most = BATCH): Generator<T[]> {
  let batch = Array.of<T>();
  let bytes = 0;
  for (const item of items) {
    const more = bytesOf(item);
    if (batch.length > 0 && (bytes + more > most || batch.length === MOST)) {
      yield batch;
      [batch, bytes] = [Array.of<T>(), 0];
    }
    batch.push(item);
    bytes += more;
  }
  if (batch.length > 0) yield batch;
}

/** Ranges of `rows` along dimension `cut`; the dimensions before it are walked one index at a time. */
function* cutAlong(shape: readonly number[], cut: number, rows: number): Generator<Box> {
  const offset = shape.map(() => 0);
  const size = shape.map((length, d) => (d < cut ? 1 : length));
  for (;;) {
    for (let row = 0; row < shape[cut]!; row += rows)
      yield { offset: offset.with(cut, row), size: size.with(cut, Math.min(rows, shape[cut]! - row)) };
    let d = cut - 1;
    for (; d >= 0; d--) {
      if (++offset[d]! < shape[d]!) break;
      offset[d] = 0;
    }
    if (d < 0) return;
  }
}
