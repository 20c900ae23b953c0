/** The machine's own disk, through Node. */
import * as fs from "node:fs/promises";
import { resolve } from "node:path";
import { hostIo } from "@opt/core";
import { type FileSystem, type FolderEntry, isMissing } from "../stores/file-system";
import { DirectWrites, isLarge } from "./node-direct";

const FLAGS = { read: "r", create: "w", update: "r+" } as const;

function kindOf(entry: { isFile(): boolean; isDirectory(): boolean }): FolderEntry["kind"] {
  return entry.isFile() ? "file" : entry.isDirectory() ? "folder" : "other";
}

/** What Node reads or writes at once at most, and a little less. */
const LARGEST = 1 << 30;

/** From this length on the way to another thread, and the sums joined, are short beside the work. */
const LONG = 64 << 10;

/** The machine's own disk. */
export const nodeFileSystem: FileSystem = {
  isNear: true,
  resolve,
  async open(path, mode, byteLength = 0) {
    const handle = await fs.open(path, FLAGS[mode]);
    let large = isLarge(mode === "update" ? (await handle.stat()).size : byteLength);
    // As long as it will be from the start: what is written makes it no longer, which each write would have to tell the journal.
    if (mode === "create" && large) await handle.truncate(byteLength);
    const direct = new DirectWrites(path);
    const put = async (data: Uint8Array, position: number) => {
      for (let done = 0; done < data.length; ) {
        done += (await handle.write(data, done, Math.min(data.length - done, LARGEST), position + done)).bytesWritten;
      }
    };
    return {
      async read(target, position, sum) {
        if (sum && target.length >= LONG) {
          sum.crc32 = await hostIo().read?.(handle.fd, target, position);
          if (sum.crc32 !== undefined) return target.length;
        }
        // Also where native code could not: Node says what is wrong.
        let done = 0;
        while (done < target.length) {
          const { bytesRead } = await handle.read(
            target,
            done,
            Math.min(target.length - done, LARGEST),
            position + done,
          );
          if (bytesRead === 0) break;
          done += bytesRead;
        }
        return done;
      },
      async write(data, position) {
        large ||= isLarge(position + data.length);
        const [begin, end] = large ? await direct.write(data, position) : [0, 0];
        await put(data.subarray(0, begin), position);
        await put(data.subarray(end), position + end);
      },
      size: async () => (await handle.stat()).size,
      finish: () => handle.sync(),
      async close() {
        await direct.close();
        await handle.close();
      },
    };
  },
  makeFolder: async (path) => void (await fs.mkdir(path, { recursive: true })),
  async list(path) {
    const entries = await fs.readdir(path, { withFileTypes: true });
    return Promise.all(
      entries.map(async (entry) => {
        // A link is what it leads to: steps on another disk, files of a cache.
        const target = entry.isSymbolicLink()
          ? await kind(resolve(path, entry.name)).catch(() => undefined)
          : undefined;
        return { name: entry.name, kind: target ?? kindOf(entry) };
      }),
    );
  },
  kind,
  modified: async (path) => (await fs.stat(path)).mtimeMs,
  rename: (from, to) => fs.rename(from, to),
  remove: (path) => fs.rm(path, { recursive: true, force: true }),
  removeEmpty: (path) => fs.rmdir(path),
  async syncFolder(path) {
    // Windows cannot open folders; its file system journals renames itself.
    if (process.platform === "win32") return;
    const handle = await fs.open(path, "r");
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  },
};

async function kind(path: string): Promise<FolderEntry["kind"] | undefined> {
  try {
    return kindOf(await fs.stat(path));
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}
