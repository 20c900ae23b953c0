/** Writing one rank's file from boxes in memory. */

import { type ShardBox, ShardWriter, type WrittenShard } from "../../format/shard";
import { FilePool } from "../../stores/file-pool";
import { diskError, type FileSystem } from "../../stores/file-system";
import { join } from "../../stores/path";

export interface ShardJob {
  readonly folder: string;
  readonly name: string;
  readonly boxes: readonly ShardBox[];
  readonly sha256: boolean;
}

/** `bytes` gives a box's contents at the moment it is written. */
export async function writeShard(
  job: ShardJob,
  bytes: (box: number) => Uint8Array | Promise<Uint8Array>,
  fileSystem: FileSystem,
  progress: (bytes: number) => void,
): Promise<WrittenShard> {
  const pool = new FilePool(fileSystem, "update");
  const writer = new ShardWriter(job.folder, job.name, job.boxes, { fileSystem, pool });
  try {
    await writer.create();
    for (let box = 0; box < job.boxes.length; box++) {
      const given = bytes(box);
      const contents = given instanceof Promise ? await given : given;
      const waiting = writer.write(box, contents);
      if (waiting) await waiting;
      progress(contents.byteLength);
    }
    const result = await writer.finish({ sha256: job.sha256 });
    await pool.close();
    return result;
  } catch (error) {
    await writer.settle();
    await pool.close().catch(() => {}); // the first error is the one that tells
    throw diskError(error, join(job.folder, job.name), "writing");
  }
}
