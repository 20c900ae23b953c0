/** How a plan, and what all ranks report after writing, become one manifest. */
import { check, OptError } from "@opt/core";
import { crcText } from "../../format/crc32";
import { Division } from "../../format/division";
import { FileIndex } from "../../format/file-index";
import type { Manifest } from "../../format/manifest";
import type { FileRecord, ShardBox } from "../../format/shard";
import type { Json, Role } from "../../format/source";
import { byPlace, describeBox } from "../../layout/box";
import type { Mesh } from "../../layout/layout";
import type { Placement } from "../../layout/placements";
import type { SavePlan, ShardableTensor } from "./plan";

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
  const byTensor = new Map<string, { first: number; count: number; isCopied: boolean }>();
  for (let rank = 0; rank < plan.ranks; rank++) {
    for (const [i, { tensor }] of plan.boxesOf(rank).entries()) {
      const sum = reports[rank]!.checksums[i]!;
      const known = byTensor.get(tensor.name);
      if (!known) byTensor.set(tensor.name, { first: sum, count: 1, isCopied: true });
      else {
        known.count++;
        known.isCopied &&= sum === known.first;
      }
    }
  }
  const divided = [...byTensor.values()].filter(({ count }) => count > 1);
  const areCopies = divided.length > 0 && divided.every(({ isCopied }) => isCopied);
  check(
    !areCopies,
    "BAD_STATE",
    "saveCheckpoint",
    () =>
      `slices of ${plan.ranks} ranks must differ, got the same bytes from all ranks in each of ${divided.length} tensors.`,
    `Where each rank has the whole tensors, say so: layout: { mesh: { shape: [${plan.ranks}], axes: ["rank"] }, tensors: { "*": "replicate" } }. Otherwise give the layout.`,
  );
}

/** `plan`: who has written which boxes. @throws OptError MISSING, naming the tensor, where boxes leave a gap */
export function assembleManifest(
  plan: SavePlan<RecordedTensor>,
  reports: readonly RankReport[],
  whole: { step: number; attempt: string; mesh: Mesh; values: { readonly [key: string]: Json } },
): Manifest {
  const ranks = reports.flatMap(({ file }, rank) => (file ? [rank] : []));
  const fileOf = new Map(ranks.map((rank, file) => [rank, file]));
  const divided = new Dividing(fileOf);
  const tensors = plan.tensors.map(({ tensor: { name, dtype, shape, role, follows }, placements, writers }) => {
    const division = divided.alike(placements, writers);
    return { name, dtype, shape, role, ...(follows === undefined ? {} : { follows }), division };
  });
  tensors.sort((a, b) => (a.name < b.name ? -1 : 1));
  const files = ranks.map((rank) => reports[rank]!.file!);
  const index = new FileIndex(files, tensors);
  const complete = new Set<Division>();
  for (const tensor of index.tensors) {
    if (!complete.has(tensor.division)) tensor.checkWhole();
    complete.add(tensor.division);
  }
  for (const [rank, file] of fileOf) index.know(file, Uint32Array.from(reports[rank]!.checksums));
  return { ...whole, world: plan.ranks, files, tensors: index.tensors, index };
}

/** Makes one division of all tensors that lie alike. */
class Dividing {
  readonly #known = new Map<readonly Placement[], Map<readonly number[] | string, Division>>();

  constructor(private readonly fileOf: ReadonlyMap<number, number>) {}

  alike(placements: readonly Placement[], writers: readonly number[]): Division {
    const known = this.#known.get(placements) ?? new Map<readonly number[] | string, Division>();
    this.#known.set(placements, known);
    const found = known.get(writers);
    if (found) return found;
    const text = writers.join();
    const division = known.get(text) ?? this.#make(placements, writers);
    known.set(writers, division).set(text, division);
    return division;
  }

  #make(placements: readonly Placement[], writers: readonly number[]): Division {
    const held = placements.flatMap(({ box }, i) =>
      writers[i]! < 0 ? [] : [{ box, file: this.fileOf.get(writers[i]!)! }],
    );
    held.sort((a, b) => byPlace(a.box, b.box));
    const [boxes, files] = [held.map(({ box }) => box), held.map(({ file }) => file)];
    return new Division(() => boxes, files);
  }
}

/** Replicas must be equal, by their checksums. @throws OptError BAD_STATE */
export function compareReplicas(plan: SavePlan, reports: readonly RankReport[]): void {
  const key = ({ tensor, box }: ShardBox) => `${tensor.name} ${describeBox(box)}`;
  const written = new Map<string, number>();
  for (const [rank, { checksums }] of reports.entries())
    for (const [i, one] of plan.boxesOf(rank).entries()) written.set(key(one), checksums[i]!);
  for (const [rank, { replicas }] of reports.entries()) {
    for (const [i, one] of replicas.length > 0 ? plan.heldBy(rank).entries() : []) {
      const first = { rank: one.writer, crc32: written.get(key(one))! };
      if (first.crc32 === replicas[i]) continue;
      const [a, b] = [first, { rank, crc32: replicas[i]! }].map((it) => `rank ${it.rank} has ${crcText(it.crc32)}`);
      const problem = `replicas of ${describeBox(one.box)} must be equal, but ${a} and ${b} as checksum.`;
      const advice = "The ranks have drifted apart: find out why, or save with checkReplicas: false.";
      throw new OptError("BAD_STATE", `tensor ${JSON.stringify(one.tensor.name)}`, problem, advice);
    }
  }
}
