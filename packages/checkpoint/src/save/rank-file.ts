/** One rank's file, and the record of it from which the manifest is made. */
import { platform } from "#platform";
import { crc32 } from "../format/crc32";
import type { RankRecord, RecordedTensor } from "../format/record";
import { shardName } from "../format/shard";
import type { LocalTensor } from "../format/tensors";
import type { FileSystem } from "../stores/file-system";
import { Scratch } from "../stores/scratch";
import { bytesOf, type Piece } from "./pieces";
import { type ShardJob, writeShard } from "./shard-job";
import { fileOrder } from "./writers";

export interface RankFile {
  readonly folder: { readonly path: string; readonly fileTag: string | undefined };
  readonly rank: number;
  /** Recorded also where another rank writes them, so that ranks that disagree about a tensor are found out. */
  readonly described: readonly LocalTensor[];
  readonly written: readonly Piece[];
  /** Held here and written elsewhere. */
  readonly held: readonly Piece[];
}

export interface RankFileOptions {
  readonly fileSystem: FileSystem;
  readonly sha256: boolean;
  /** Record the checksums of what is held too. */
  readonly checkReplicas: boolean;
  /** The pieces are copies in shared memory: another thread writes them. */
  readonly copied: boolean;
  readonly report: (bytes: number) => void;
}

interface OpenRecord extends RecordedTensor {
  readonly written: RecordedTensor["written"][number][];
  readonly held: RecordedTensor["held"][number][];
}

export async function writeRankFile(file: RankFile, options: RankFileOptions): Promise<RankRecord> {
  const { folder, rank, described, held } = file;
  const { fileSystem, sha256, checkReplicas, copied, report } = options;
  const written = [...file.written].sort(fileOrder);
  const recorded = new Map<string, OpenRecord>();
  const recordOf = ({ name, dtype, shape, role, follows }: LocalTensor) => {
    const known = recorded.get(name);
    if (known) return known;
    const made: OpenRecord =
      follows === undefined
        ? { name, dtype, shape, role, written: [], held: [] }
        : { name, dtype, shape, role, follows, written: [], held: [] };
    recorded.set(name, made);
    return made;
  };
  for (const tensor of described) recordOf(tensor);
  const scratch = new Scratch([...written, ...held].reduce((most, piece) => Math.max(most, bytesOf([piece])), 0));
  let record: RankRecord["file"];
  if (written.length > 0) {
    const boxes = written.map(({ tensor, box }) => ({ tensor: tensor.name, dtype: tensor.dtype, box }));
    const job: ShardJob = { folder: folder.path, name: shardName(rank, folder.fileTag), boxes, sha256 };
    const result =
      copied && platform.startThread && fileSystem === platform.fileSystem
        ? await (await import("./shard-thread")).writeShardInThread(
            platform.startThread,
            job,
            await Promise.all(written.map(({ bytes }) => bytes())),
            report,
          )
        : await writeShard(job, (box) => written[box]!.bytes(scratch), fileSystem, report);
    record = result.file;
    written.forEach(({ tensor, box: { offset, size } }, i) => {
      const { byteOffset, byteLength, crc32 } = result.boxes[i]!;
      recordOf(tensor).written.push({ offset, size, byteOffset, byteLength, crc32 });
    });
  }
  if (checkReplicas) {
    for (const { tensor, box, bytes } of held)
      recordOf(tensor).held.push({ ...box, crc32: crc32(await bytes(scratch)) });
  }
  return { rank, ...(record ? { file: record } : {}), tensors: [...recorded.values()] };
}
