/** Writing one rank's file on another thread, so that training goes on meanwhile. */

import { OptError } from "@opt/core";
import { crc32 } from "../../format/crc32";
import { recordShard, shardHeader, type WrittenShard } from "../../format/shard";
import type { StartThread } from "../../platform/platform";
import { diskError } from "../../stores/file-system";
import { join } from "../../stores/path";
import type { Assignment } from "./plan";

/** One rank's file. */
export interface ShardJob {
  readonly folder: string;
  readonly name: string;
  readonly boxes: readonly Assignment[];
  readonly sha256: boolean;
}

/** Plain Node and nothing to import: it runs the same from source, from a package and inside a bundle. */
export const THREAD = `
const { parentPort, workerData } = require("node:worker_threads");
const { closeSync, fsyncSync, openSync, writeSync } = require("node:fs");
const { createHash } = require("node:crypto");
const { crc32 } = require("node:zlib");
const { path, header, buffers, places, sha256, piece } = workerData;
try {
  const file = openSync(path, "w");
  const hash = sha256 ? createHash("sha256") : undefined;
  const checksums = new Uint32Array(places.length / 3);
  const put = (bytes) => {
    for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done, bytes.length - done);
    hash?.update(bytes);
  };
  const tell = (bytes) => {
    put(bytes);
    parentPort.postMessage({ bytes: bytes.length });
  };
  const small = new Uint8Array(piece);
  let filled = 0;
  const flush = () => {
    if (filled > 0) tell(small.subarray(0, filled));
    filled = 0;
  };
  try {
    put(header);
    for (let box = 0; box < checksums.length; box++) {
      const [buffer, begin, length] = places.subarray(3 * box, 3 * box + 3);
      const bytes = new Uint8Array(buffers[buffer], begin, length);
      if (filled + length > piece) flush();
      if (length <= piece >> 2) {
        small.set(bytes, filled);
        filled += length;
        checksums[box] = crc32(bytes);
        continue;
      }
      flush();
      for (let start = 0; start < length; start += piece) {
        const part = bytes.subarray(start, start + piece);
        tell(part);
        checksums[box] = crc32(part, checksums[box]);
      }
    }
    flush();
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  parentPort.postMessage({ checksums, sha256: hash?.digest("hex") });
} catch (error) {
  parentPort.postMessage({ failed: { message: error.message, code: error.code } });
}`;

const PIECE = 4 << 20;

type Reply =
  | { readonly bytes: number }
  | { readonly checksums: Uint32Array; readonly sha256?: string }
  | { readonly failed: { readonly message: string; readonly code?: string } };

/** As `writeShard` on the machine's own disk. `contents`, copies of `threadCopies`, are not copied again. */
export async function writeShardInThread(
  startThread: StartThread,
  job: ShardJob,
  contents: readonly Uint8Array[],
  progress: (bytes: number) => void,
): Promise<WrittenShard> {
  const path = join(job.folder, job.name);
  const { bytes: header, begins } = shardHeader(job.boxes);
  const buffers = [...new Set(contents.map((bytes) => bytes.buffer))];
  const numbers = new Map(buffers.map((buffer, number) => [buffer, number]));
  /** Of each box the number of its buffer, where in it the bytes begin, and how many there are. */
  const places = new Float64Array(3 * contents.length);
  contents.forEach((bytes, i) => {
    places.set([numbers.get(bytes.buffer)!, bytes.byteOffset, bytes.length], 3 * i);
  });
  const workerData = { path, header, buffers, places, sha256: job.sha256, piece: PIECE };
  const { checksums, sha256 } = await new Promise<{ checksums: Uint32Array; sha256?: string }>((resolve, reject) => {
    const message = (reply: Reply) => {
      if ("checksums" in reply) resolve(reply);
      else if ("failed" in reply) reject(diskError(Object.assign(new Error(), reply.failed), path, "writing"));
      else progress(reply.bytes);
    };
    const exit = (code: number) => {
      const problem = `the writing thread ended with code ${code}.`;
      reject(new OptError("IO", path, problem, "Older steps are untouched: save again."));
    };
    startThread(THREAD, workerData, { message: message as (reply: unknown) => void, error: reject, exit });
  });
  return recordShard(job.name, { byteLength: header.length, crc32: crc32(header) }, begins, checksums, sha256);
}
