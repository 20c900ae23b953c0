/** What of a checkpoint is to be loaded: boxes of tensors, whole, by slices, or as a rank of a layout holds them. */
import { check, OptError } from "@opt/core";
import { bytesPerElement } from "../format/dtype";
import type { SourceTensor } from "../format/source";
import { type Box, describeBox, elementsIn, fits, wholeOf } from "../layout/box";
import { boxesOfRank, defaultLayout, type Layout, ranksOf } from "../layout/layout";

/** Half-open [begin, end) per dimension; null, or dimensions left out, for all of it. */
export type Slice = readonly (readonly [begin: number, end: number] | null)[];

export interface Parts {
  /** Parts of tensors, by name: only their bytes are read. */
  readonly slices?: Readonly<Record<string, Slice>>;
  /** What rank `rank` of this layout holds; without a layout, of `world` ranks that split the first dimension. */
  readonly layout?: Layout;
  readonly rank?: number;
  readonly world?: number;
}

export interface Wanted {
  readonly tensor: SourceTensor;
  readonly box: Box;
}

export function bytesIn({ tensor, box }: Wanted): number {
  return elementsIn(box) * bytesPerElement(tensor.dtype);
}

function isPair(cut: unknown): boolean {
  return Array.isArray(cut) && cut.length === 2 && cut.every((at) => Number.isSafeInteger(at));
}

/** Throws BAD_SHAPE for a slice that leaves its tensor, BAD_ARGUMENT for one that is none, or for such a rank, UNSUPPORTED for one of several boxes. */
export function boxesWanted(tensor: SourceTensor, parts: Parts): readonly Box[] {
  const where = `tensor ${JSON.stringify(tensor.name)}`;
  const slice = parts.slices?.[tensor.name];
  if (slice !== undefined) {
    const { shape } = tensor;
    const isCut = Array.isArray(slice) && slice.every((cut: unknown) => cut === null || isPair(cut));
    const problem = () => `its slice must list [begin, end) pairs or null, got ${JSON.stringify(slice)}.`;
    check(isCut, "BAD_ARGUMENT", where, problem, "For example [[0, 16]].");
    const box = {
      offset: shape.map((_, d) => slice[d]?.[0] ?? 0),
      size: shape.map((length, d) => (slice[d] ? slice[d][1] - slice[d][0] : length)),
    };
    const leaves = () => `slice ${describeBox(box)} leaves the shape [${shape}].`;
    check(
      slice.length <= shape.length && fits(box, shape),
      "BAD_SHAPE",
      where,
      leaves,
      "Use [begin, end) pairs inside it.",
    );
    return [box];
  }
  if (parts.rank === undefined) {
    if (!parts.layout && parts.world === undefined) return [wholeOf(tensor.shape)];
    throw new OptError("BAD_ARGUMENT", "loadCheckpoint", "a layout or world needs a rank.", "Give rank.");
  }
  const layout = parts.layout ?? defaultLayout(parts.world ?? 1);
  const noRank = () => `rank must be in [0, ${ranksOf(layout)}), got ${parts.rank}.`;
  check(parts.rank >= 0 && parts.rank < ranksOf(layout), "BAD_ARGUMENT", "loadCheckpoint", noRank, "Give world.");
  const boxes = boxesOfRank(layout, tensor, parts.rank);
  const several = () => `rank ${parts.rank} holds ${boxes.length} boxes of it.`;
  check(boxes.length <= 1, "UNSUPPORTED", where, several, "Load them by slices.");
  return boxes;
}
