/** Node: its own disk, zlib's checksums, threads, and processes that `/proc` tells about. */
import { createHash } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { threadId, Worker } from "node:worker_threads";
import { crc32 } from "node:zlib";
import { threadCopies } from "./node-copies";
import { pages } from "./node-direct";
import { nodeFileSystem } from "./node-file-system";
import { nodeRequest } from "./node-request";
import type { Platform } from "./platform";

export const platform: Platform = {
  fileSystem: nodeFileSystem,
  crc32,
  async sha256() {
    const hash = createHash("sha256");
    return { update: (bytes) => void hash.update(bytes), digest: () => hash.digest("hex") };
  },
  sha256Of: async (bytes) => createHash("sha256").update(bytes).digest("hex"),
  request: nodeRequest,
  sameBytes: (a, b) => Buffer.compare(a, b) === 0,
  pages,
  threadCopies,
  startThread(code, workerData, { message, error, exit }) {
    const worker = new Worker(code, { eval: true, workerData, execArgv: [] });
    worker.on("message", message);
    worker.on("error", error);
    worker.on("exit", exit);
  },
  thisProcess() {
    own ??= `${hostname().replace(/[^A-Za-z0-9-]/g, "-")}.${kernel()}.${process.pid}.${startOf(process.pid) ?? 0}`;
    return own;
  },
  threadId,
  processLife(theirKernel, pid, start) {
    if (theirKernel !== kernel()) return "unknown";
    const started = startOf(pid);
    if (started !== undefined) return `${started}` === start ? "alive" : "dead";
    return isRunning(pid) ? "alive" : "dead";
  },
};

let own: string | undefined;
let known: string | undefined;

/** Tells apart what counts process ids on its own: each boot of each machine, each container. */
function kernel(): string {
  known ??= identified();
  return known;
}

function identified(): string {
  const parts = [read(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()) ?? hostname()];
  parts.push(read(() => readlinkSync("/proc/self/ns/pid")) ?? "");
  return createHash("sha256").update(parts.join()).digest("hex").slice(0, 12);
}

/** When a process started, in clock ticks since the boot; undefined where there is no such process, or the system does not say. */
function startOf(pid: number): number | undefined {
  const stat = read(() => readFileSync(`/proc/${pid}/stat`, "latin1"));
  // The second field is the program's name in brackets, which may hold anything.
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
  // A zombie has died, whether or not its parent has noticed.
  return fields === undefined || fields[0] === "Z" || fields[0] === "X" ? undefined : Number(fields[19]);
}

function isRunning(pid: number): boolean {
  if (process.platform === "linux") return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

function read(body: () => string): string | undefined {
  try {
    return body();
  } catch {
    return undefined;
  }
}
