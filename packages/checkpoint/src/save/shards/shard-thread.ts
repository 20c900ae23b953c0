/** Writing one rank's file on another thread, so that training goes on meanwhile. */

import { OptError } from "@opt/core";
import { crc32 } from "../../format/crc32";
import { recordShard, shardHeader, type WrittenShard } from "../../format/shard";
import type { StartThread } from "../../platform/platform";
import { diskError } from "../../stores/file-system";
import { join } from "../../stores/path";
import type { ShardJob } from "./shard-job";

/** Plain Node and nothing to import: it runs the same from source, from a package and inside a bundle. */
const THREAD = `
const { parentPort, workerData } = require("node:worker_threads");
const { closeSync, fsyncSync, openSync, writeSync } = require("node:fs");
const { createHash } = require("node:crypto");
const { crc32 } = require("node:zlib");
const { path, header, contents, sha256, piece } = workerData;
try {
  const file = openSync(path, "w");
  const hash = sha256 ? createHash("sha256") : undefined;
  const checksums = [];
  try {
    for (const bytes of [header, ...contents]) {
      let crc = 0;
      for (let start = 0; start < bytes.length; ) {
        const written = writeSync(file, bytes, start, Math.min(piece, bytes.length - start));
        const part = bytes.subarray(start, start + written);
        crc = crc32(part, crc);
        hash?.update(part);
        start += written;
      }
      checksums.push(crc);
      parentPort.postMessage({ bytes: bytes.length });
    }
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  parentPort.postMessage({ checksums: checksums.slice(1), sha256: hash?.digest("hex") });
} catch (error) {
  parentPort.postMessage({ failed: { message: error.message, code: error.code } });
}`;

const PIECE = 4 << 20;

type Reply =
  | { readonly bytes: number }
  | { readonly checksums: readonly number[]; readonly sha256?: string }
  | { readonly failed: { readonly message: string; readonly code?: string } };

/** As `writeShard` on the machine's own disk. `contents` in shared memory are not copied. */
export async function writeShardInThread(
  startThread: StartThread,
  job: ShardJob,
  contents: readonly Uint8Array[],
  progress: (bytes: number) => void,
): Promise<WrittenShard> {
  const path = join(job.folder, job.name);
  const { bytes: header, begins } = shardHeader(job.boxes);
  const workerData = { path, header, contents, sha256: job.sha256, piece: PIECE };
  const { checksums, sha256 } = await new Promise<{ checksums: readonly number[]; sha256?: string }>(
    (resolve, reject) => {
      let headerSeen = false;
      const message = (reply: Reply) => {
        if ("checksums" in reply) resolve(reply);
        else if ("failed" in reply) reject(diskError(Object.assign(new Error(), reply.failed), path, "writing"));
        else if (headerSeen) progress(reply.bytes);
        else headerSeen = true;
      };
      const exit = (code: number) => {
        const problem = `the writing thread ended with code ${code}.`;
        reject(new OptError("IO", path, problem, "Older steps are untouched: save again."));
      };
      startThread(THREAD, workerData, { message: message as (reply: unknown) => void, error: reject, exit });
    },
  );
  return recordShard(job.name, { byteLength: header.length, crc32: crc32(header) }, begins, checksums, sha256);
}
