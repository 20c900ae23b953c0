/** Writes the files of a plan that are this process' own. */
import { platform } from "#platform";
import { crc32 } from "../../format/crc32";
import { byteLengthOf, shardName, type WrittenShard } from "../../format/shard";
import { FilePool } from "../../stores/file-pool";
import { diskError, type FileSystem } from "../../stores/file-system";
import { allOf } from "../../stores/lanes";
import { join } from "../../stores/path";
import { type ProgressCallback, reporter } from "../../stores/progress";
import { Scratch } from "../../stores/scratch";
import type { RankReport } from "./assemble";
import type { Holdings } from "./holdings";
import type { Assignment, SavePlan } from "./plan";
import type { ShardJob } from "./shard-thread";
import { ShardWriter } from "./shard-writer";

const LANES = 4;

export interface Execution {
  readonly ranks: readonly number[];
  readonly fileSystem: FileSystem;
  readonly folder: string;
  readonly fileTag: string | undefined;
  readonly sha256: boolean;
  /** Take the checksums of what other ranks write too. */
  readonly checkReplicas: boolean;
  readonly progress: ProgressCallback | undefined;
}

/** What was written, in the order of `ranks`. @throws OptError CHANGED, IO */
export async function executeSave(holdings: Holdings, plan: SavePlan, execution: Execution): Promise<RankReport[]> {
  const { ranks, checkReplicas, progress } = execution;
  const boxes = ranks.map((rank) => plan.boxesOf(rank));
  const report = reporter(
    progress,
    boxes.flat().reduce((sum, one) => sum + byteLengthOf(one), 0),
  );
  const reports: RankReport[] = [];
  const queue = ranks.entries(); // of all lanes
  const lane = async () => {
    for (const [i, rank] of queue) {
      const held = checkReplicas ? plan.heldBy(rank) : [];
      reports[i] = await writeOne(holdings, boxes[i]!, held, rank, execution, report);
    }
  };
  await allOf(Array.from({ length: LANES }, lane));
  holdings.checkUnchanged();
  return reports;
}

async function writeOne(
  holdings: Holdings,
  boxes: readonly Assignment[],
  held: readonly Assignment[],
  rank: number,
  { fileSystem, folder, fileTag, sha256 }: Execution,
  report: (bytes: number) => void,
): Promise<RankReport> {
  const scratch = new Scratch([...boxes, ...held].reduce((most, one) => Math.max(most, byteLengthOf(one)), 0));
  const replicas: number[] = [];
  for (const one of held) replicas.push(crc32(await holdings.bytes(one, scratch)));
  if (boxes.length === 0) return { checksums: [], replicas };
  const job: ShardJob = { folder, name: shardName(rank, fileTag), boxes, sha256 };
  // Copies that another thread can have: it writes them.
  const inThread = holdings.isCopied && fileSystem === platform.fileSystem ? platform.startThread : undefined;
  const { file, checksums } = inThread
    ? await (await import("./shard-thread")).writeShardInThread(
        inThread,
        job,
        await Promise.all(boxes.map((one) => holdings.bytes(one))),
        report,
      )
    : await writeShard(job, (box) => holdings.bytes(boxes[box]!, scratch), fileSystem, report);
  return { file, checksums: Array.from(checksums), replicas };
}

/** `bytes` gives a box's contents at the moment it is written. */
async function writeShard(
  { folder, name, boxes, sha256 }: ShardJob,
  bytes: (box: number) => Uint8Array | Promise<Uint8Array>,
  fileSystem: FileSystem,
  report: (bytes: number) => void,
): Promise<WrittenShard> {
  const pool = new FilePool(fileSystem, "update");
  const writer = new ShardWriter(folder, name, boxes, { fileSystem, pool });
  try {
    await writer.create();
    for (let box = 0; box < boxes.length; box++) {
      const given = bytes(box);
      const contents = given instanceof Promise ? await given : given;
      const waiting = writer.write(box, contents);
      if (waiting) await waiting;
      report(contents.byteLength);
    }
    const written = await writer.finish({ sha256 });
    await pool.close();
    return written;
  } catch (error) {
    await writer.settle();
    await pool.close().catch(() => {}); // the first error is the one that tells
    throw diskError(error, join(folder, name), "writing");
  }
}
