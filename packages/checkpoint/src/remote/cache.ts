/** Blocks of far files on this machine's disk, each with its checksum: one that is damaged is fetched again. */
import { OptError } from "@opt/core";
import { platform } from "#platform";
import { type FileSystem, writeBytes } from "../stores/file-system";
import { allOf } from "../stores/lanes";
import { fail, type ObjectStat, type ObjectStore } from "../stores/objects";
import { join } from "../stores/path";

const BLOCK = 1 << 20;

/** So many neighbours are fetched at once. */
const RUN = 16;

/** Bytes of the checksum behind a block. */
const SUM = 4;

interface CachedFile {
  readonly folder: CacheFolder;
  /** Blocks that are whole on the disk, or will be. */
  readonly ready: Map<number, Promise<void>>;
  /** Blocks for which there was no room. */
  readonly left: Set<number>;
}

/** In a file's folder: changed when the file is opened. */
const USED = "used";

const LIMIT = 10 * 2 ** 30;

/** Where blocks are kept. */
export interface CacheFolder {
  readonly fileSystem: FileSystem;
  readonly path: string;
  /** Most bytes in it, about. */
  readonly limit?: number | undefined;
}

/** The files of `store`, which `name` tells from others, kept in a folder. What has no version is fetched each time. */
export function cached(store: ObjectStore, name: string, kept: CacheFolder): Pick<ObjectStore, "read"> {
  const { fileSystem, path: folder, limit = LIMIT } = kept;
  const files = new Map<string, Promise<CachedFile>>();
  /** Names of folders that this process reads. */
  const inUse = new Set<string>();
  let room = 0;

  const open = async (key: string, { version, byteLength }: ObjectStat): Promise<CachedFile> => {
    const id = JSON.stringify([name, key, version, byteLength]);
    const own = await platform.sha256Of(new TextEncoder().encode(id));
    const path = join(folder, own);
    inUse.add(own);
    await fileSystem.makeFolder(path).catch((cause: Error) => unwritable(folder, cause));
    await writeBytes(fileSystem, join(path, USED), new Uint8Array(0)).catch((cause: Error) =>
      unwritable(folder, cause),
    );
    await makeRoom(own, byteLength);
    return { folder: { fileSystem, path }, ready: new Map(), left: new Set() };
  };

  /** Removes what was opened least recently until a file of this length has room, as far as there is any. */
  const makeRoom = async (opened: string, byteLength: number) => {
    // The folder may be the user's, and hold more.
    const own = (await fileSystem.list(folder)).filter(
      ({ kind, name }) => kind === "folder" && /^[0-9a-f]{64}$/.test(name),
    );
    const sizes = own.map(async ({ name }) => {
      const path = join(folder, name);
      const used = await fileSystem.modified(join(path, USED)).catch(() => 0);
      const blocks = (await fileSystem.list(path).catch(() => [])).filter((entry) => entry.name !== USED);
      return { name, path, used, bytes: blocks.length * BLOCK };
    });
    const held = (await Promise.all(sizes)).sort((a, b) => a.used - b.used);
    room = limit - held.reduce((sum, { bytes }) => sum + bytes, 0);
    const wanted = Math.min(limit, byteLength + BLOCK) - (held.find(({ name }) => name === opened)?.bytes ?? 0);
    for (const { name, path, bytes } of held) {
      if (room >= wanted) break;
      if (inUse.has(name)) continue;
      await fileSystem.remove(path).catch(() => undefined);
      room += bytes;
    }
  };

  const fetchRun = async (key: string, stat: ObjectStat, file: CachedFile, first: number, count: number) => {
    const begin = first * BLOCK;
    const bytes = new Uint8Array(Math.min(count * BLOCK, stat.byteLength - begin));
    await store.read(key, bytes, begin, stat);
    const write = (_: unknown, i: number) =>
      writeBlock(file.folder, first + i, bytes.slice(i * BLOCK, (i + 1) * BLOCK));
    await allOf(Array.from({ length: count }, write)).catch((cause: Error) => unwritable(folder, cause));
  };

  /** Fetches those of some blocks that are not there. */
  const fill = async (key: string, stat: ObjectStat, file: CachedFile, blocks: readonly number[]) => {
    const whole = await Promise.all(blocks.map((block) => isWhole(file.folder, block, stat)));
    const absent = blocks.filter((_, i) => !whole[i]);
    if (absent.length * BLOCK > room) {
      for (const block of absent) file.left.add(block);
      return;
    }
    room -= absent.length * BLOCK;
    for (let i = 0, count = 1; i < absent.length; i += count) {
      count = 1;
      while (absent[i + count] === absent[i]! + count) count++;
      await fetchRun(key, stat, file, absent[i]!, count);
    }
  };

  return {
    async read(key, target, position, stat) {
      if (stat.version === undefined) return store.read(key, target, position, stat);
      const opening = files.get(key) ?? open(key, stat);
      files.set(key, opening);
      const file = await opening;
      const [first, end] = [Math.floor(position / BLOCK), Math.ceil((position + target.length) / BLOCK)];
      const blocks = Array.from({ length: end - first }, (_, i) => first + i);
      const unknown = blocks.filter((block) => !file.ready.has(block));
      let filling = Promise.resolve();
      for (let i = 0; i < unknown.length; i += RUN) {
        const some = unknown.slice(i, i + RUN);
        filling = filling.then(() => fill(key, stat, file, some));
        for (const block of some) file.ready.set(block, filling);
        filling.catch(() => some.map((block) => file.ready.delete(block)));
      }
      await allOf(blocks.map((block) => file.ready.get(block)!));
      const copy = async (block: number) => {
        const [from, to] = [Math.max(position, block * BLOCK), Math.min(position + target.length, (block + 1) * BLOCK)];
        const part = target.subarray(from - position, to - position);
        if (file.left.has(block)) return store.read(key, part, from, stat);
        const count = await readBlock(file.folder, block, part, from - block * BLOCK);
        if (count < part.length) throw fail("ESTALE", `${join(file.folder.path, `${block}`)} has been cut short`);
      };
      await allOf(blocks.map(copy));
    },
  };
}

async function readBlock(
  { fileSystem, path }: CacheFolder,
  block: number,
  target: Uint8Array,
  position: number,
): Promise<number> {
  const file = await fileSystem.open(join(path, `${block}`), "read");
  try {
    return await file.read(target, position);
  } finally {
    await file.close();
  }
}

async function isWhole(folder: CacheFolder, block: number, { byteLength }: ObjectStat): Promise<boolean> {
  const length = Math.min(BLOCK, byteLength - block * BLOCK);
  const bytes = new Uint8Array(length + SUM);
  const count = await readBlock(folder, block, bytes, 0).catch(() => 0);
  return count === bytes.length && new DataView(bytes.buffer).getUint32(length, true) === crcOf(bytes, length);
}

async function writeBlock({ fileSystem, path }: CacheFolder, block: number, data: Uint8Array): Promise<void> {
  const bytes = new Uint8Array(data.length + SUM);
  bytes.set(data);
  new DataView(bytes.buffer).setUint32(data.length, crcOf(bytes, data.length), true);
  await writeBytes(fileSystem, join(path, `${block}`), bytes);
}

function crcOf(bytes: Uint8Array, length: number): number {
  return platform.crc32(bytes.subarray(0, length));
}

function unwritable(folder: string, cause: Error): never {
  const problem = `the cache must be writable, got ${cause.message}.`;
  throw new OptError("IO", folder, problem, "Free some space, or name another folder as cache.", { cause });
}
