/** How a plan, and what all ranks report after writing, become one manifest. */
import { check, OptError } from "@opt/core";
import { crcText } from "../../format/crc32";
import type { Manifest, ManifestBox, ManifestTensor } from "../../format/manifest";
import { byteLengthOf, type FileRecord } from "../../format/shard";
import type { Json, Role } from "../../format/source";
import { byPlace, describeBox, wholeOf } from "../../layout/box";
import type { Mesh } from "../../layout/layout";
import { SourcePlan } from "../../plan/plan";
import { heldBy, type SavePlan, type ShardableTensor } from "./plan";

/** A whole tensor that is saved. */
export interface RecordedTensor extends ShardableTensor {
  readonly role: Role;
}

/** Of a rank's file and what it holds of others'. */
export interface RankReport {
  /** Without it the rank has nothing to write. */
  readonly file?: FileRecord;
  /** Of the boxes of the file, in the order of the plan. */
  readonly checksums: ArrayLike<number>;
  /** Of boxes that this rank holds and another writes. */
  readonly replicas: readonly number[];
}

/**
 * Slices of a layout that nobody gave must not be copies of one tensor: a forgotten layout would make a larger one of them.
 *
 * @throws OptError BAD_STATE
 */
export function checkNotCopies(plan: SavePlan, reports: readonly RankReport[]): void {
  const byTensor = new Map<string, number[]>();
  for (const [rank, boxes] of plan.entries())
    for (const [i, { tensor }] of boxes.entries())
      byTensor.set(tensor.name, [...(byTensor.get(tensor.name) ?? []), reports[rank]!.checksums[i]!]);
  const divided = [...byTensor.values()].filter(({ length }) => length > 1);
  const areCopies = divided.length > 0 && divided.every(([first, ...others]) => others.every((each) => each === first));
  check(
    !areCopies,
    "BAD_STATE",
    "saveCheckpoint",
    () =>
      `slices of ${plan.length} ranks must differ, got the same bytes from all ranks in each of ${divided.length} tensors.`,
    `Where each rank has the whole tensors, say so: layout: { mesh: { shape: [${plan.length}], axes: ["rank"] }, tensors: { "*": "replicate" } }. Otherwise give the layout of the slices.`,
  );
}

/** `plan`: by rank, the boxes of its file. @throws OptError MISSING, naming the tensor, where boxes leave a gap */
export function assembleManifest(
  recorded: readonly RecordedTensor[],
  plan: SavePlan,
  reports: readonly RankReport[],
  whole: { step: number; attempt: string; mesh: Mesh; values: { readonly [key: string]: Json } },
): Manifest {
  const files: FileRecord[] = [];
  const boxesOf = new Map<string, ManifestBox[]>(recorded.map(({ name }) => [name, []]));
  for (const [rank, { file, checksums }] of reports.entries()) {
    if (!file) continue;
    let byteOffset = file.headerLength;
    for (const [i, one] of plan[rank]!.entries()) {
      const { offset, size } = one.box;
      const byteLength = byteLengthOf(one);
      const crc32 = checksums[i]!;
      boxesOf.get(one.tensor.name)!.push({ offset, size, file: files.length, byteOffset, byteLength, crc32 });
      byteOffset += byteLength;
    }
    files.push(file);
  }
  const tensors = recorded.map(({ name, dtype, shape, role, follows }): ManifestTensor => {
    const boxes = boxesOf.get(name)!.sort(byPlace);
    new SourcePlan({ name, shape }, boxes).sourcesOf(wholeOf(shape));
    return { name, dtype, shape, role, ...(follows === undefined ? {} : { follows }), boxes };
  });
  return { ...whole, world: plan.length, files, tensors: tensors.sort((a, b) => (a.name < b.name ? -1 : 1)) };
}

/** Replicas must be equal, by their checksums. @throws OptError BAD_STATE */
export function compareReplicas(plan: SavePlan, reports: readonly RankReport[]): void {
  const written = new Map<SavePlan[number][number], { rank: number; crc32: number }>();
  for (const [rank, boxes] of plan.entries())
    for (const [i, one] of boxes.entries()) written.set(one, { rank, crc32: reports[rank]!.checksums[i]! });
  for (const [rank, { replicas }] of reports.entries()) {
    const held = replicas.length > 0 ? heldBy(plan, rank) : [];
    for (const [i, one] of held.entries()) {
      const first = written.get(one)!;
      if (first.crc32 === replicas[i]) continue;
      const [a, b] = [first, { rank, crc32: replicas[i]! }].map((it) => `rank ${it.rank} has ${crcText(it.crc32)}`);
      const problem = `replicas of ${describeBox(one.box)} must be equal, but ${a} and ${b} as checksum.`;
      const advice = "The ranks have drifted apart: find out why, or save with checkReplicas: false.";
      throw new OptError("BAD_STATE", `tensor ${JSON.stringify(one.tensor.name)}`, problem, advice);
    }
  }
}
