/** What each rank reports after writing, and how the reports of all become one manifest. */
import { OptError } from "@opt/core";
import { type Box, describeBox, sameBox, wholeOf } from "../layout/box";
import type { Mesh } from "../layout/layout";
import { SourcePlan } from "../plan/plan";
import { crcText } from "./crc32";
import type { StoredDType } from "./dtype";
import type { Manifest, ManifestBox, ManifestTensor } from "./manifest";
import type { FileRecord, WrittenBox } from "./shard";
import type { Json, Role } from "./source";

export interface RecordedTensor {
  readonly name: string;
  readonly dtype: StoredDType;
  readonly shape: readonly number[];
  readonly role: Role;
  readonly follows?: string;
  readonly written: readonly (Box & WrittenBox)[];
  /** Checksums of boxes that this rank holds and another writes. */
  readonly held: readonly (Box & { readonly crc32: number })[];
}

export interface RankRecord {
  readonly rank: number;
  readonly file?: FileRecord;
  readonly tensors: readonly RecordedTensor[];
}

/** Throws BAD_SHAPE, BAD_DTYPE, BAD_STATE or MISSING, naming the tensor, where the ranks' reports do not fit together. */
export function assembleManifest(
  records: readonly RankRecord[],
  whole: { step: number; attempt: string; mesh: Mesh; values: { readonly [key: string]: Json } },
  options: { checkReplicas: boolean },
): Manifest {
  const files: FileRecord[] = [];
  const writers: number[] = [];
  const tensors = new Map<string, { first: RecordedTensor; rank: number; boxes: ManifestBox[] }>();
  for (const { rank, file, tensors: recorded } of records) {
    if (file) [files[files.length], writers[writers.length]] = [file, rank];
    for (const tensor of recorded) {
      const known = tensors.get(tensor.name) ?? { first: tensor, rank, boxes: [] };
      if (known.first === tensor) tensors.set(tensor.name, known);
      else refuseDisagreement(tensor, rank, known);
      for (const { offset, size, byteOffset, byteLength, crc32 } of tensor.written)
        known.boxes.push({ offset, size, file: files.length - 1, byteOffset, byteLength, crc32 });
    }
  }
  const merged = [...tensors.values()].map(({ first: { written: _, held: __, ...description }, boxes }) => ({
    ...description,
    boxes: withoutReplicas(description.name, boxes, writers, options.checkReplicas),
  }));
  if (options.checkReplicas) refuseUnequalReplicas(records, merged, writers);
  return completeManifest({ ...whole, world: records.length, files, tensors: merged });
}

/** The manifest in its order. Throws MISSING or CORRUPT, naming the tensor, where boxes leave a gap or overlap. */
export function completeManifest(manifest: Manifest): Manifest {
  const tensors = [...manifest.tensors].sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const tensor of tensors) new SourcePlan(tensor, tensor.boxes).sourcesOf(wholeOf(tensor.shape));
  return { ...manifest, tensors };
}

function refuseDisagreement(
  tensor: RecordedTensor,
  rank: number,
  known: { first: RecordedTensor; rank: number },
): void {
  const where = `tensor ${JSON.stringify(tensor.name)}`;
  const { first, rank: firstRank } = known;
  if (tensor.dtype !== first.dtype) {
    throw new OptError(
      "BAD_DTYPE",
      where,
      `rank ${firstRank} holds ${first.dtype}, rank ${rank} ${tensor.dtype}.`,
      "Make them equal.",
    );
  }
  if (tensor.shape.length !== first.shape.length || tensor.shape.some((length, d) => length !== first.shape[d])) {
    const problem = `rank ${firstRank} says that the whole is [${first.shape}], rank ${rank} [${tensor.shape}].`;
    throw new OptError(
      "BAD_SHAPE",
      where,
      problem,
      "Give a communicator, or the whole shape in the layout: { split, shape }.",
    );
  }
}

function withoutReplicas(
  name: string,
  boxes: ManifestBox[],
  writers: readonly number[],
  check: boolean,
): readonly ManifestBox[] {
  if (boxes.length < 2) return boxes;
  const seen = new Map<string, ManifestBox>();
  for (const box of boxes) {
    const key = `${box.offset},${box.size}`;
    const known = seen.get(key);
    if (!known) seen.set(key, box);
    else if (check && known.crc32 !== box.crc32) throw unequalReplicas(name, box, [known, box].map(holder(writers)));
  }
  return seen.size === boxes.length ? boxes : [...seen.values()];
}

const holder =
  (writers: readonly number[]) =>
  ({ file, crc32 }: ManifestBox) => ({ rank: writers[file]!, crc32 });

function refuseUnequalReplicas(
  records: readonly RankRecord[],
  tensors: readonly ManifestTensor[],
  writers: readonly number[],
): void {
  const byName = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  for (const { rank, tensors: recorded } of records) {
    for (const { name, held } of recorded) {
      for (const replica of held) {
        const box = byName.get(name)!.boxes.find((one) => sameBox(one, replica));
        if (box && box.crc32 !== replica.crc32)
          throw unequalReplicas(name, box, [holder(writers)(box), { ...replica, rank }]);
      }
    }
  }
}

function unequalReplicas(name: string, box: Box, holders: readonly { rank: number; crc32: number }[]): OptError {
  const [a, b] = holders.map(({ rank, crc32 }) => `rank ${rank} has ${crcText(crc32)}`);
  return new OptError(
    "BAD_STATE",
    `tensor ${JSON.stringify(name)}`,
    `replicas of ${describeBox(box)} must be equal, but ${a} and ${b} as checksum.`,
    "The ranks have drifted apart: find out why, or save with checkReplicas: false.",
  );
}
