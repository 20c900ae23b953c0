/** One rank's file, and the record of it from which the manifest is made. */
import { platform } from "#platform";
import { crc32 } from "../../format/crc32";
import { type HeldBox, type RankRecord, recordedBoxes } from "../../format/record";
import { shardName } from "../../format/shard";
import type { LocalTensor } from "../../format/tensors";
import type { FileSystem } from "../../stores/file-system";
import { Scratch } from "../../stores/scratch";
import { bytesOf, type Holdings } from "./pieces";
import { type ShardJob, writeShard } from "./shard-job";
import { type Assignment, fileOrder } from "./writers";

export interface RankFile {
  readonly folder: { readonly path: string; readonly fileTag: string | undefined };
  readonly rank: number;
  /** Recorded also where another rank writes them, so that ranks that disagree about a tensor are found out. */
  readonly described: readonly LocalTensor[];
  readonly written: readonly Assignment<LocalTensor>[];
  /** Held here and written elsewhere. */
  readonly held: readonly Assignment<LocalTensor>[];
}

export interface RankFileOptions {
  readonly fileSystem: FileSystem;
  readonly sha256: boolean;
  /** Record the checksums of what is held too. */
  readonly checkReplicas: boolean;
  readonly report: (bytes: number) => void;
}

export async function writeRankFile(
  holdings: Holdings,
  { folder, rank, described, written: unsorted, held }: RankFile,
  { fileSystem, sha256, checkReplicas, report }: RankFileOptions,
): Promise<RankRecord> {
  const tensors = described.map(({ name, dtype, shape, role, follows }) =>
    follows === undefined ? { name, dtype, shape, role } : { name, dtype, shape, role, follows },
  );
  const boxes = [...unsorted].sort(fileOrder);
  const scratch = new Scratch([...boxes, ...held].reduce((most, one) => Math.max(most, bytesOf(one)), 0));
  const checksums: HeldBox[] = [];
  if (checkReplicas) {
    for (const one of held)
      checksums.push({ tensor: one.tensor.name, ...one.box, crc32: crc32(await holdings.bytes(one, scratch)) });
  }
  const record = { rank, tensors, written: [], held: checksums };
  if (boxes.length === 0) return record;
  const job: ShardJob = { folder: folder.path, name: shardName(rank, folder.fileTag), boxes, sha256 };
  // Copies that another thread can have: it writes them.
  const inThread = holdings.isCopied && fileSystem === platform.fileSystem ? platform.startThread : undefined;
  const shard = inThread
    ? await (await import("./shard-thread")).writeShardInThread(
        inThread,
        job,
        await Promise.all(boxes.map((one) => holdings.bytes(one))),
        report,
      )
    : await writeShard(job, (box) => holdings.bytes(boxes[box]!, scratch), fileSystem, report);
  return { ...record, file: shard.file, written: recordedBoxes(boxes, shard) };
}
