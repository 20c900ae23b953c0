/** What each rank reports after writing, and how the reports of all become one manifest. */
import { check } from "@opt/core";
import { type Box, byPlace, sameBox, wholeOf } from "../layout/box";
import type { Mesh } from "../layout/layout";
import { SourcePlan } from "../plan/plan";
import type { StoredDType } from "./dtype";
import type { Manifest, ManifestBox, ManifestTensor } from "./manifest";
import type { FileRecord, ShardBox, WrittenShard } from "./shard";
import type { Json, Role } from "./source";

export interface RecordedTensor {
  readonly name: string;
  readonly dtype: StoredDType;
  readonly shape: readonly number[];
  readonly role: Role;
  readonly follows?: string;
}

/** A box of a tensor that a rank holds. */
export interface HeldBox extends Box {
  readonly tensor: string;
  readonly crc32: number;
}

/** A box and where in the rank's file it lies. */
export interface RecordedBox extends HeldBox {
  readonly byteOffset: number;
  readonly byteLength: number;
}

export interface RankRecord {
  readonly rank: number;
  readonly file?: FileRecord;
  /** What this rank says of the tensors; every one that it writes is among those of some rank up to it. */
  readonly tensors: readonly RecordedTensor[];
  readonly written: Iterable<RecordedBox>;
  /** Boxes that this rank holds and another writes. */
  readonly held: readonly HeldBox[];
}

/** The boxes of a file that was written, each made when it is asked for: of a hundred thousand none lives long. */
export function* recordedBoxes(
  boxes: readonly ShardBox[],
  { begins, checksums }: WrittenShard,
): Generator<RecordedBox> {
  for (let i = 0; i < boxes.length; i++) {
    const { tensor, box } = boxes[i]!;
    const { offset, size } = box;
    const byteOffset = begins[i]!;
    const byteLength = begins[i + 1]! - byteOffset;
    yield { tensor: tensor.name, offset, size, byteOffset, byteLength, crc32: checksums[i]! };
  }
}

/** Tensors of all ranks with their boxes, replicas among them, and which rank wrote which file. Throws. */
export type CompareReplicas = (
  records: readonly RankRecord[],
  tensors: ReadonlyMap<string, ManifestTensor>,
  writers: readonly number[],
) => void;

/**
 * Throws BAD_SHAPE, BAD_DTYPE or MISSING, naming the tensor, where the ranks' reports do not fit together, and what `compare` throws.
 */
export function assembleManifest(
  records: readonly RankRecord[],
  whole: { step: number; attempt: string; mesh: Mesh; values: { readonly [key: string]: Json } },
  compare?: CompareReplicas,
): Manifest {
  const files: FileRecord[] = [];
  const writers: number[] = [];
  const tensors = new Map<string, RecordedTensor & { readonly boxes: ManifestBox[] }>();
  for (const { rank, file, tensors: recorded, written } of records) {
    if (file) [files[files.length], writers[writers.length]] = [file, rank];
    for (const tensor of recorded) {
      const known = tensors.get(tensor.name);
      if (known) refuseDisagreement(tensor, rank, known, records);
      else tensors.set(tensor.name, { ...tensor, boxes: [] });
    }
    for (const { tensor, offset, size, byteOffset, byteLength, crc32 } of written)
      tensors.get(tensor)!.boxes.push({ offset, size, file: files.length - 1, byteOffset, byteLength, crc32 });
  }
  compare?.(records, tensors, writers);
  for (const { boxes } of tensors.values()) dropReplicas(boxes);
  const sorted = [...tensors.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const tensor of sorted) new SourcePlan(tensor, tensor.boxes).sourcesOf(wholeOf(tensor.shape));
  return { ...whole, world: records.length, files, tensors: sorted };
}

function refuseDisagreement(
  tensor: RecordedTensor,
  rank: number,
  first: RecordedTensor,
  records: readonly RankRecord[],
): void {
  const where = `tensor ${JSON.stringify(tensor.name)}`;
  const firstRank = records.findIndex(({ tensors }) => tensors.some(({ name }) => name === tensor.name));
  const dtypes = () => `rank ${firstRank} holds ${first.dtype}, rank ${rank} ${tensor.dtype}.`;
  check(tensor.dtype === first.dtype, "BAD_DTYPE", where, dtypes, "Make them equal.");
  const shapes = () => `rank ${firstRank} says that the whole is [${first.shape}], rank ${rank} [${tensor.shape}].`;
  const advice = "Give a communicator, or the whole shape in the layout: { split, shape }.";
  check(`${tensor.shape}` === `${first.shape}`, "BAD_SHAPE", where, shapes, advice);
}

/** Puts the boxes in the order of their places, where replicas stand next to each other; the first rank's stays. */
function dropReplicas(boxes: ManifestBox[]): void {
  boxes.sort(byPlace);
  let kept = 0;
  for (const box of boxes) {
    const known = boxes[kept - 1];
    if (!known || !sameBox(known, box)) boxes[kept++] = box;
  }
  boxes.length = kept;
}
