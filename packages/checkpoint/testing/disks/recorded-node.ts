/** Records each change that code makes to the machine's own disk, below Node, and loses power at each point of the record. */
import fs from "node:fs";
import promises from "node:fs/promises";
import { createRequire, syncBuiltinESMExports } from "node:module";
import { join, sep } from "node:path";
import { platform } from "#platform";
import type { FileSystem } from "../../src/stores/file-system";
import { dirname } from "../../src/stores/path";
import { Disk, type FileNode } from "../simulator/disk";
import { atOnce, diskFileSystem } from "../simulator/file-system";
import { Scheduler } from "../simulator/scheduler";

/** One change, in the order in which they took effect. `file` numbers openings. */
type Change =
  | { readonly call: "open"; readonly file: number; readonly path: string; readonly creates: boolean }
  | { readonly call: "write"; readonly file: number; readonly data: Uint8Array; readonly position: number }
  | { readonly call: "extend"; readonly file: number; readonly length: number }
  | { readonly call: "sync"; readonly file: number; readonly path: string }
  | { readonly call: "makeFolder" | "remove"; readonly path: string }
  | { readonly call: "rename"; readonly path: string; readonly to: string };

interface Opened {
  readonly file: number;
  readonly path: string;
  position: number;
}

/** Calls of Node that change files and are not recorded: code that begins to use one teaches it here first. */
const UNKNOWN = [
  "writeFile",
  "appendFile",
  "copyFile",
  "cp",
  "link",
  "symlink",
  "truncate",
  "unlink",
  "rmdir",
] as const;
const UNKNOWN_OF_HANDLES = ["writeFile", "appendFile", "writev", "datasync", "createWriteStream"] as const;

export class RecordedNode {
  readonly changes: Change[] = [];
  /** Changes so far that were asked for, whether or not they were made. */
  calls = 0;
  /** What is there before, and durable: files by their paths, folders with null. */
  readonly before = new Map<string, Uint8Array | null>();
  #files = 0;

  /** Only what is in `folder` is recorded. It exists. The disk rejects change `failAt`, counted from 0. */
  constructor(
    readonly folder: string,
    private readonly failAt = Infinity,
  ) {
    for (const entry of fs.readdirSync(folder, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      this.before.set(path, entry.isFile() ? fs.readFileSync(path) : null);
    }
  }

  /** Runs `body` with Node's functions replaced, and puts them back. */
  async during<T>(body: () => Promise<T>): Promise<T> {
    const probe = await promises.open(this.folder, "r");
    const handles = Object.getPrototypeOf(probe);
    await probe.close();
    const restore = [
      replace(promises, this.#asynchronous()),
      replace(fs, this.#synchronous()),
      replace(handles, this.#ofHandles(handles)),
      replace(platform, { startThread: runHere }),
    ];
    syncBuiltinESMExports();
    try {
      return await body();
    } finally {
      for (const each of restore) each();
      syncBuiltinESMExports();
    }
  }

  #isOurs(path: unknown): path is string {
    return typeof path === "string" && (path === this.folder || path.startsWith(`${this.folder}${sep}`));
  }

  #rejectIfAt(call: string): void {
    if (this.calls++ !== this.failAt) return;
    throw Object.assign(new Error(`ENOSPC: injected at ${call}`), { code: "ENOSPC" });
  }

  #opened(path: string, flags: unknown): Opened {
    const creates = flags === "w" || flags === "wx";
    if (!creates && flags !== "r" && flags !== "r+" && typeof flags !== "number") throw new Error(`flags ${flags}`);
    const opened = { file: this.#files++, path, position: 0 };
    this.changes.push({ call: "open", file: opened.file, path, creates });
    return opened;
  }

  /** In two halves: a power loss may keep one of them. */
  #wrote({ file }: Opened, data: Uint8Array, position: number): void {
    const half = data.length >> 1;
    for (const [begin, end] of [
      [0, half],
      [half, data.length],
    ] as const)
      if (begin < end)
        this.changes.push({ call: "write", file, data: data.slice(begin, end), position: position + begin });
  }

  /** What changed while it ran may not be covered, so such a sync counts for nothing. */
  #synced({ file, path }: Opened, begun: number): void {
    const openings = new Set(
      this.changes.flatMap((one) => (one.call === "open" && one.path === path ? [one.file] : [])),
    );
    const isOverlapped = this.changes.slice(begun).some((one) => {
      if (one.call === "write" || one.call === "extend") return openings.has(one.file);
      return one.call !== "sync" && (dirname(one.path) === path || ("to" in one && dirname(one.to) === path));
    });
    if (!isOverlapped) this.changes.push({ call: "sync", file, path });
  }

  readonly #handles = new WeakMap<object, Opened>();

  #asynchronous(): Partial<typeof promises> {
    const { open, mkdir, rename, rm } = promises;
    const known = {
      open: async (path: string, flags?: unknown, mode?: number) => {
        const isOurs = this.#isOurs(path);
        if (isOurs && flags !== "r") this.#rejectIfAt(`open ${flags} ${path}`);
        const handle = await open(path, flags as never, mode);
        if (isOurs) this.#handles.set(handle, this.#opened(path, flags));
        return handle;
      },
      mkdir: async (path: string, options: never) => {
        if (!this.#isOurs(path)) return mkdir(path, options);
        this.#rejectIfAt(`mkdir ${path}`);
        const made = await mkdir(path, options);
        this.changes.push({ call: "makeFolder", path });
        return made;
      },
      rename: async (path: string, to: string) => {
        if (!this.#isOurs(path) && !this.#isOurs(to)) return rename(path, to);
        this.#rejectIfAt(`rename ${path} ${to}`);
        await rename(path, to);
        this.changes.push({ call: "rename", path, to });
      },
      rm: async (path: string, options: never) => {
        if (!this.#isOurs(path)) return rm(path, options);
        await rm(path, options);
        this.changes.push({ call: "remove", path });
      },
    };
    return { ...this.#unknown(promises, UNKNOWN), ...known } as unknown as Partial<typeof promises>;
  }

  /** What the thread of an async save calls. */
  #synchronous(): Partial<typeof fs> {
    const { openSync, writeSync, fsyncSync } = fs;
    const files = new Map<number, Opened>();
    const known = {
      openSync: (path: string, flags: string, mode?: number) => {
        const isOurs = this.#isOurs(path);
        if (isOurs) this.#rejectIfAt(`open ${flags} ${path}`);
        const descriptor = openSync(path, flags, mode);
        files.delete(descriptor);
        if (isOurs) files.set(descriptor, this.#opened(path, flags));
        return descriptor;
      },
      writeSync: (descriptor: number, data: Uint8Array, ...rest: [number?, number?, number?]) => {
        const opened = files.get(descriptor);
        if (opened) this.#rejectIfAt(`write ${opened.path}`);
        const written = writeSync(descriptor, data, ...rest);
        const [begin = 0, , position] = rest;
        if (opened) this.#wrote(opened, data.subarray(begin, begin + written), position ?? opened.position);
        if (opened) opened.position += written;
        return written;
      },
      fsyncSync: (descriptor: number) => {
        const opened = files.get(descriptor);
        if (opened) this.#rejectIfAt(`sync ${opened.path}`);
        fsyncSync(descriptor);
        if (opened) this.#synced(opened, this.changes.length);
      },
    };
    return known as unknown as Partial<typeof fs>;
  }

  #ofHandles(prototype: Record<string, (...args: never[]) => unknown>) {
    const { write, truncate, sync } = prototype as Record<string, (this: object, ...args: unknown[]) => Promise<never>>;
    const openedBy = (handle: object) => this.#handles.get(handle);
    const wrote = this.#wrote.bind(this);
    const synced = this.#synced.bind(this);
    const { changes } = this;
    const rejectIfAt = this.#rejectIfAt.bind(this);
    return {
      ...this.#unknown(prototype, UNKNOWN_OF_HANDLES),
      async write(this: object, data: Uint8Array, begin: number, length: number, position: number) {
        const opened = openedBy(this);
        if (opened) rejectIfAt(`write ${opened.path}`);
        const done = (await write!.call(this, data, begin, length, position)) as { bytesWritten: number };
        if (opened) wrote(opened, data.subarray(begin, begin + done.bytesWritten), position);
        return done;
      },
      async truncate(this: object, length: number) {
        const opened = openedBy(this);
        if (opened) rejectIfAt(`truncate ${opened.path}`);
        await truncate!.call(this, length);
        if (opened) changes.push({ call: "extend", file: opened.file, length });
      },
      async sync(this: object) {
        const opened = openedBy(this);
        if (opened) rejectIfAt(`sync ${opened.path}`);
        const begun = changes.length;
        await sync!.call(this);
        if (opened) synced(opened, begun);
      },
    };
  }

  #unknown(owner: object, names: readonly string[]): Record<string, unknown> {
    const functions = owner as Record<string, (...args: unknown[]) => unknown>;
    const rejected = names.filter((name) => functions[name] !== undefined);
    return Object.fromEntries(
      rejected.map((name) => {
        const original = functions[name]!;
        const handles = this.#handles;
        const isOurs = (value: unknown) => this.#isOurs(value);
        return [
          name,
          function (this: object, ...args: unknown[]) {
            if (handles.has(this ?? {}) || args.some(isOurs))
              throw new Error(`${name} is not recorded: teach it here.`);
            return original.apply(this, args);
          },
        ];
      }),
    );
  }
}

/** Replaces functions of an object; returns what puts them back. */
function replace<T extends object>(owner: T, functions: Partial<T>): () => void {
  const before = Object.fromEntries(Object.keys(functions).map((name) => [name, owner[name as keyof T]]));
  Object.assign(owner, functions);
  return () => void Object.assign(owner, before);
}

/** The script of a thread in this one, where Node's functions are replaced. */
const runHere: NonNullable<typeof platform.startThread> = (code, workerData, { message, exit }) => {
  const require = createRequire(import.meta.url);
  const parentPort = { postMessage: (reply: unknown) => queueMicrotask(() => message(reply)) };
  const modules = (name: string) => (name === "node:worker_threads" ? { parentPort, workerData } : require(name));
  new Function("require", code)(modules);
  queueMicrotask(() => exit(0));
};

/** A power loss that keeps each change that was not synced by itself: what code must wait for shows soonest so. */
class PowerLoss extends Scheduler {
  override below(count: number): number {
    return count === 4 ? 3 : super.below(count);
  }
}

/** Power losses after each change: each keeps another part. */
const LOSSES = 4;
/** After a rename they do most harm. */
const LOSSES_AFTER_RENAME = 12;

/** `inspect` gets the disk as it is then. */
export type Inspection = (fileSystem: FileSystem) => Promise<void>;

/** Ends the process, or the power, after each change. @throws what `inspect` throws, with the calls before */
export async function afterEachCrash(node: RecordedNode, inspect: Inspection): Promise<void> {
  const { changes } = node;
  for (let count = 1; count <= changes.length; count++) {
    // A loss after several writes may keep any of them: it need not come after each.
    if (changes[count - 1]!.call === "write" && changes[count]?.call === "write") continue;
    await afterCrash(node, inspect, count);
  }
}

/** Ends the process, or the power, after the first `count` changes, all without it. */
export async function afterCrash(node: RecordedNode, inspect: Inspection, count = node.changes.length): Promise<void> {
  const changes = node.changes.slice(0, count);
  const losses = changes.at(-1)?.call === "rename" ? LOSSES_AFTER_RENAME : LOSSES;
  for (let seed = 0; seed <= losses; seed++) {
    const disk = diskAfter(node, changes, new PowerLoss(100 * count + seed));
    if (seed > 0) disk.losePower();
    try {
      await inspect(diskFileSystem(disk, atOnce));
    } catch (error) {
      const what = seed > 0 ? `a power loss (${seed})` : "the end of the process";
      throw new Error(`${changes.map(described).join("\n")}\nthen ${what}: ${(error as Error).message}`);
    }
  }
}

function diskAfter({ folder, before }: RecordedNode, changes: readonly Change[], scheduler: Scheduler): Disk {
  const disk = new Disk(scheduler);
  disk.makeFolder(folder);
  for (const [path, data] of before) {
    disk.makeFolder(data ? dirname(path) : path);
    if (!data) continue;
    const file = disk.create(path);
    file.write(data, 0);
    file.sync();
  }
  disk.syncAll();
  const files = new Map<number, FileNode>();
  for (const change of changes) {
    if (change.call === "makeFolder") disk.makeFolder(change.path);
    else if (change.call === "rename") disk.rename(change.path, change.to);
    else if (change.call === "remove") disk.remove(change.path);
    else if (change.call === "open") {
      if (change.creates) files.set(change.file, disk.create(change.path));
      else if (disk.kind(change.path) === "file") files.set(change.file, disk.open(change.path));
    } else if (change.call === "write") files.get(change.file)!.write(change.data, change.position);
    else if (change.call === "extend") {
      const file = files.get(change.file)!;
      file.write(new Uint8Array(change.length - file.data.length), file.data.length);
    } else if (change.call === "sync") {
      const file = files.get(change.file);
      if (file) file.sync();
      else disk.syncFolder(change.path);
    }
  }
  return disk;
}

function described(change: Change): string {
  if (change.call === "write") return `write ${change.file} at ${change.position}, ${change.data.length} bytes`;
  if (change.call === "extend") return `extend ${change.file} to ${change.length}`;
  const file = "file" in change ? `${change.file} ` : "";
  return `${change.call} ${file}${change.path}${change.call === "rename" ? ` ${change.to}` : ""}`;
}
