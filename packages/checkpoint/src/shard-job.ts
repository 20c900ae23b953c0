/** Writing one rank's file from boxes in memory: the part of a save that may run in a worker thread. */
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { OptError } from "@opt/core";
import { FilePool } from "./file-pool";
import { diskError, type FileSystem } from "./file-system";
import { type Outcome, unwrap } from "./outcome";
import { type FileRecord, type ShardBox, ShardWriter, type WrittenBox } from "./shard";

export interface ShardJob {
  readonly folder: string;
  readonly name: string;
  readonly boxes: readonly ShardBox[];
  readonly sha256: boolean;
}

export interface ShardResult {
  readonly file: FileRecord;
  readonly boxes: readonly WrittenBox[];
}

/** `bytes` gives a box's contents at the moment it is written. */
export async function writeShard(
  job: ShardJob,
  bytes: (box: number) => Uint8Array | Promise<Uint8Array>,
  fileSystem: FileSystem,
  progress: (bytes: number) => void,
): Promise<ShardResult> {
  const pool = new FilePool(fileSystem, "update");
  try {
    const writer = new ShardWriter(job.folder, job.name, job.boxes, { fileSystem, pool });
    await writer.create();
    for (let box = 0; box < job.boxes.length; box++) {
      const contents = await bytes(box);
      await writer.write(box, contents);
      progress(contents.byteLength);
    }
    const result = await writer.finish({ sha256: job.sha256 });
    await pool.close();
    return result;
  } catch (error) {
    await pool.close().catch(() => {}); // the first error is the one that tells
    throw diskError(error, join(job.folder, job.name), "writing");
  }
}

export type WorkerReply =
  | { readonly kind: "progress"; readonly bytes: number }
  | { readonly kind: "end"; readonly outcome: Outcome<ShardResult> };

/** As `writeShard`, on another thread. The buffers move there. */
export function writeShardInWorker(
  job: ShardJob,
  contents: readonly Uint8Array[],
  progress: (bytes: number) => void,
): Promise<ShardResult> {
  const isSource = import.meta.url.endsWith(".ts");
  const file = new URL(isSource ? "./save-worker.ts" : "./save-worker.js", import.meta.url);
  const transferList = [...new Set(contents.map(({ buffer }) => buffer as ArrayBuffer))];
  const worker = new Worker(file, {
    workerData: { job, contents },
    transferList,
    // Node reads TypeScript through tsx; the flags of a test runner's own threads are not meant for this one.
    execArgv: isSource ? ["--import", "tsx", "--conditions=@opt/source"] : [],
  });
  const ended = new Promise<Outcome<ShardResult>>((resolve, reject) => {
    worker.on("message", (reply: WorkerReply) => {
      if (reply.kind === "progress") progress(reply.bytes);
      else resolve(reply.outcome);
    });
    worker.on("error", reject);
    worker.on("exit", (code) => {
      reject(
        new OptError(
          "IO",
          job.name,
          `the writing thread ended with code ${code}.`,
          "Older steps are untouched: save again.",
        ),
      );
    });
  });
  return ended.then(unwrap);
}
