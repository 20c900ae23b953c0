/**
 * A disk that tells what is durable from what is not: contents until their file is synced, names until their folder is. A power loss keeps
 * any part of the rest.
 */
import type { FolderEntry } from "../../src/stores/file-system";
import { basename, dirname } from "../../src/stores/path";
import type { Scheduler } from "./scheduler";

export class FileNode {
  data = new Uint8Array(0);
  #durable = new Uint8Array(0);
  /** Since the last sync; undefined empties the file. */
  #unsynced: ({ readonly data: Uint8Array; readonly position: number } | undefined)[] = [];

  write(data: Uint8Array, position: number): void {
    this.#unsynced.push({ data: data.slice(), position });
    this.data = written(this.data, data, position);
  }

  truncate(): void {
    this.#unsynced.push(undefined);
    this.data = new Uint8Array(0);
  }

  sync(): void {
    this.#durable = this.data.slice();
    this.#unsynced = [];
  }

  losePower(scheduler: Scheduler): void {
    let data = this.#durable.slice();
    for (const one of keptOf(scheduler, this.#unsynced)) {
      if (one === undefined) data = new Uint8Array(0);
      else data = written(data, one.data, one.position);
    }
    this.data = data;
    this.sync();
  }
}

function written(before: Uint8Array, data: Uint8Array, position: number): Uint8Array<ArrayBuffer> {
  const after = new Uint8Array(Math.max(before.length, position + data.length));
  after.set(before);
  after.set(data, position);
  return after;
}

type Names = Map<string, Node>;
type Node = FileNode | FolderNode;

export class FolderNode {
  names: Names = new Map();
  #durable: Names = new Map();
  /** Since the last sync. */
  #unsynced: ((names: Names) => void)[] = [];

  change(body: (names: Names) => void): void {
    this.#unsynced.push(body);
    body(this.names);
  }

  sync(): void {
    this.#durable = new Map(this.names);
    this.#unsynced = [];
  }

  syncAll(): void {
    this.sync();
    for (const node of this.names.values()) {
      if (node instanceof FolderNode) node.syncAll();
      else node.sync();
    }
  }

  losePower(scheduler: Scheduler): void {
    const names = new Map(this.#durable);
    for (const change of keptOf(scheduler, this.#unsynced)) change(names);
    this.names = names;
    this.sync();
    for (const node of names.values()) node.losePower(scheduler);
  }
}

/** All, none, the first ones, or any of them. */
function keptOf<T>(scheduler: Scheduler, changes: readonly T[]): readonly T[] {
  if (changes.length === 0) return changes;
  const how = scheduler.below(4);
  if (how === 0) return changes;
  if (how === 1) return [];
  return how === 2
    ? changes.slice(0, scheduler.below(changes.length + 1))
    : changes.filter(() => scheduler.chance(0.5));
}

function fail(code: string, path: string): never {
  throw Object.assign(new Error(`${code}: ${path}`), { code });
}

const partsOf = (path: string) => path.split("/").filter((part) => part !== "");

export class Disk {
  readonly #scheduler: Scheduler;
  readonly #root = new FolderNode();
  /** Nothing more can be written. */
  isFull = false;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  #node(path: string): Node | undefined {
    let node: Node | undefined = this.#root;
    for (const part of partsOf(path)) node = node instanceof FolderNode ? node.names.get(part) : undefined;
    return node;
  }

  #folder(path: string): FolderNode {
    const node = this.#node(path);
    return node instanceof FolderNode ? node : fail("ENOENT", path);
  }

  #rejectIfFull(path: string): void {
    if (this.isFull) fail("ENOSPC", path);
  }

  create(path: string): FileNode {
    this.#rejectIfFull(path);
    const folder = this.#folder(dirname(path));
    const known = this.#node(path);
    if (known instanceof FileNode) {
      known.truncate();
      return known;
    }
    const file = new FileNode();
    folder.change((names) => names.set(basename(path), file));
    return file;
  }

  open(path: string): FileNode {
    const node = this.#node(path);
    return node instanceof FileNode ? node : fail("ENOENT", path);
  }

  write(path: string, file: FileNode, data: Uint8Array, position: number): void {
    this.#rejectIfFull(path);
    file.write(data, position);
  }

  makeFolder(path: string): void {
    let [folder, at] = [this.#root, ""];
    for (const part of partsOf(path)) {
      at += `/${part}`;
      let next = folder.names.get(part);
      if (!next) {
        this.#rejectIfFull(path);
        const made = new FolderNode();
        next = made;
        folder.change((names) => names.set(part, made));
      }
      if (next instanceof FileNode) fail("ENOTDIR", at);
      folder = next;
    }
  }

  list(path: string): FolderEntry[] {
    const entries = [...this.#folder(path).names];
    const all = entries.map(([name, node]) => ({ name, kind: node instanceof FileNode ? "file" : "folder" }) as const);
    return this.#scheduler.shuffle(all);
  }

  kind(path: string): FolderEntry["kind"] | undefined {
    const node = this.#node(path);
    return node && (node instanceof FileNode ? "file" : "folder");
  }

  /** Between two folders, after a power loss the name may be in both or in neither. */
  rename(from: string, to: string): void {
    const moved = this.#node(from) ?? fail("ENOENT", from);
    const there = this.#node(to);
    if (there instanceof FolderNode && there.names.size > 0) fail("ENOTEMPTY", to);
    if (dirname(from) !== dirname(to)) {
      const [source, target] = [this.#folder(dirname(from)), this.#folder(dirname(to))];
      target.change((names) => names.set(basename(to), moved));
      source.change((names) => names.delete(basename(from)));
      return;
    }
    this.#folder(dirname(from)).change((names) => {
      const node = names.get(basename(from));
      const target = names.get(basename(to));
      if (!node || (target instanceof FolderNode && target.names.size > 0)) return;
      names.delete(basename(from));
      names.set(basename(to), node);
    });
  }

  remove(path: string, isWhole = true): void {
    const node = this.#node(path);
    if (!node) return;
    if (node instanceof FolderNode) {
      for (const name of this.#scheduler.shuffle([...node.names.keys()])) {
        if (isWhole || this.#scheduler.chance(0.5)) this.remove(`${path}/${name}`);
      }
    }
    if (isWhole) this.#folder(dirname(path)).change((names) => names.delete(basename(path)));
  }

  /** Makes all names and contents durable. */
  syncAll(): void {
    this.#root.syncAll();
  }

  syncFolder(path: string): void {
    this.#folder(path).sync();
  }

  losePower(): void {
    this.#scheduler.say("the power is lost");
    this.#root.losePower(this.#scheduler);
  }
}
