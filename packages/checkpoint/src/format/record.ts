/** What each rank reports after writing, and how the plan and the reports of all become one manifest. */
import { type Box, byPlace, wholeOf } from "../layout/box";
import type { Mesh } from "../layout/layout";
import { SourcePlan } from "../plan/plan";
import type { Manifest, ManifestBox, ManifestTensor } from "./manifest";
import { byteLengthOf, type FileRecord } from "./shard";
import type { Json } from "./source";

export type RecordedTensor = Omit<ManifestTensor, "boxes">;

/** Of a rank's file and what it holds of others'. */
export interface RankReport {
  /** Without it the rank has nothing to write. */
  readonly file?: FileRecord;
  /** Of the boxes of the file, in the order of the plan. */
  readonly checksums: ArrayLike<number>;
  /** Of boxes that this rank holds and another writes. */
  readonly replicas: readonly number[];
}

/** `plan`: by rank, the boxes of its file. Throws MISSING, naming the tensor, where boxes leave a gap. */
export function assembleManifest(
  recorded: readonly RecordedTensor[],
  plan: readonly (readonly { readonly tensor: RecordedTensor; readonly box: Box }[])[],
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
