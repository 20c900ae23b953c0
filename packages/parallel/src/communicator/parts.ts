/** How a flat list of elements is divided among ranks, and how a rank's part travels. */
import { partOf } from "@opt/core/backend";

export interface Part {
  readonly begin: number;
  readonly end: number;
}

/** The first `count mod parts` have one more, as checkpoints' `balanced`. */
export function partsOf(count: number, parts: number, multiple?: number): Part[] {
  return Array.from({ length: parts }, (_, part) => {
    const [begin, end] = partOf(count, parts, part, multiple);
    return { begin, end };
  });
}

/** While one of these is added the next ones are on their way; it stays in the cache of a core. */
export const PIECE_BYTES = 1 << 20;

/** A part in pieces. The last is shorter than a whole one, even if it is empty: so ranks whose sizes differ find out. */
export function piecesOf({ begin, end }: Part, width: number): Part[] {
  const whole = PIECE_BYTES / width;
  const count = begin === end ? 0 : Math.floor((end - begin) / whole) + 1;
  const at = (piece: number) => Math.min(begin + piece * whole, end);
  return Array.from({ length: count }, (_, piece) => ({ begin: at(piece), end: at(piece + 1) }));
}

/** A list of so few bytes travels whole to each rank: one wait in place of two, and half of the messages. */
const SMALL_BYTES = 4096;
/** Among more ranks it travels to the first one and back: 2 W messages in place of W x W. */
const FEW_RANKS = 8;

const isSmall = (count: number, width: number) => count * width <= SMALL_BYTES;

export const travelsWhole = (count: number, width: number, ranks: number) =>
  isSmall(count, width) && ranks <= FEW_RANKS;

/** What each rank adds of a list that does not travel whole. */
export function sharesOf(count: number, width: number, ranks: number): Part[] {
  if (!isSmall(count, width)) return partsOf(count, ranks);
  return Array.from({ length: ranks }, (_, rank) => ({ begin: rank === 0 ? 0 : count, end: count }));
}
