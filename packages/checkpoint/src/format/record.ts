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
  const tensors = new Map<string, { first: RecordedTensor; rank: number; boxes: (ManifestBox & { rank: number })[] }>();
  for (const { rank, file, tensors: recorded } of records) {
    if (file) files.push(file);
    for (const tensor of recorded) {
      const known = tensors.get(tensor.name) ?? { first: tensor, rank, boxes: [] };
      tensors.set(tensor.name, known);
      refuseDisagreement(tensor, rank, known);
      for (const box of tensor.written) known.boxes.push({ ...box, file: files.length - 1, rank });
    }
  }
  const merged: ManifestTensor[] = [];
  for (const { first, boxes } of tensors.values()) {
    const { written: _, held: __, ...description } = first;
    const distinct = withoutReplicas(first.name, boxes, options.checkReplicas);
    new SourcePlan(first, distinct).sourcesOf(wholeOf(first.shape));
    merged.push({ ...description, boxes: distinct.map(({ rank: _rank, ...box }) => box) });
  }
  if (options.checkReplicas) refuseUnequalReplicas(records, merged);
  merged.sort((a, b) => (a.name < b.name ? -1 : 1));
  return { ...whole, world: records.length, files, tensors: merged };
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

function withoutReplicas<T extends ManifestBox & { rank: number }>(
  name: string,
  boxes: readonly T[],
  check: boolean,
): T[] {
  const seen = new Map<string, T>();
  for (const box of boxes) {
    const key = describeBox(box);
    const known = seen.get(key);
    if (!known) seen.set(key, box);
    else if (check && known.crc32 !== box.crc32) throw unequalReplicas(name, box, [known, box]);
  }
  return [...seen.values()];
}

function refuseUnequalReplicas(records: readonly RankRecord[], tensors: readonly ManifestTensor[]): void {
  const byName = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  for (const { rank, tensors: recorded } of records) {
    for (const { name, held } of recorded) {
      for (const replica of held) {
        const box = byName.get(name)!.boxes.find((one) => sameBox(one, replica));
        if (box && box.crc32 !== replica.crc32) throw unequalReplicas(name, box, [box, { ...replica, rank }]);
      }
    }
  }
}

function unequalReplicas(name: string, box: Box, holders: readonly { rank?: number; crc32: number }[]): OptError {
  const [a, b] = holders.map(
    ({ rank, crc32 }) => `${rank === undefined ? "the writer" : `rank ${rank}`} has ${crcText(crc32)}`,
  );
  return new OptError(
    "BAD_STATE",
    `tensor ${JSON.stringify(name)}`,
    `replicas of ${describeBox(box)} must be equal, but ${a} and ${b} as checksum.`,
    "The ranks have drifted apart: find out why, or save with checkReplicas: false.",
  );
}
