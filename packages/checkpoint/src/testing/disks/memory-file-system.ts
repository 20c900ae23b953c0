/**
 * A disk in memory that remembers what was made durable. After a crash it can be looked at as the worst and the best of disks would
 * leave it: with or without the contents that were not synced, with or without the names that were not.
 */
import { dirname, resolve, sep } from "node:path";
import type { FileSystem, FolderEntry, OpenMode } from "../../stores/file-system";

interface FileNode {
  data: Uint8Array;
  durable: Uint8Array;
}

interface FolderNode {
  readonly children: Map<string, Node>;
  durable: Map<string, Node>;
}

type Node = FileNode | FolderNode;

export interface CrashKind {
  /** Whether contents that were never synced survive. */
  readonly contents: boolean;
  /** Whether names (renames, new and removed entries) that were never synced survive. */
  readonly names: boolean;
}

export const CRASHES: readonly CrashKind[] = [
  { contents: true, names: true },
  { contents: false, names: true },
  { contents: true, names: false },
  { contents: false, names: false },
];

const isFolder = (node: Node | undefined): node is FolderNode => node !== undefined && "children" in node;

function fail(code: string, path: string): never {
  throw Object.assign(new Error(`${code}: ${path}`), { code });
}

export class MemoryFileSystem implements FileSystem {
  #root: FolderNode = { children: new Map(), durable: new Map() };
  isNear = true;
  /** Bytes handed out by reads, per file name, to count what was really read. */
  bytesRead = 0;

  #node(path: string): Node | undefined {
    let node: Node | undefined = this.#root;
    for (const part of resolve(path).split(sep).filter(Boolean))
      node = isFolder(node) ? node.children.get(part) : undefined;
    return node;
  }

  #folder(path: string): FolderNode {
    const node = this.#node(path);
    return isFolder(node) ? node : fail("ENOENT", path);
  }

  #file(path: string): FileNode {
    const node = this.#node(path);
    return node && !isFolder(node) ? node : fail("ENOENT", path);
  }

  static #name(path: string): string {
    return resolve(path).split(sep).at(-1)!;
  }

  /** The contents of a file, which a test may change in place. */
  contents(path: string): Uint8Array {
    return this.#file(path).data;
  }

  replace(path: string, data: Uint8Array): void {
    this.#file(path).data = data;
  }

  async open(path: string, mode: OpenMode) {
    if (mode === "create") {
      const folder = this.#folder(dirname(path));
      const known = this.#node(path);
      if (known && !isFolder(known)) known.data = new Uint8Array(0);
      else folder.children.set(MemoryFileSystem.#name(path), { data: new Uint8Array(0), durable: new Uint8Array(0) });
    }
    const file = this.#file(path);
    return {
      read: async (target: Uint8Array, position: number) => {
        const piece = file.data.subarray(position, position + target.length);
        target.set(piece);
        this.bytesRead += piece.length;
        return piece.length;
      },
      write: async (data: Uint8Array, position: number) => {
        if (position + data.length > file.data.length) {
          const longer = new Uint8Array(position + data.length);
          longer.set(file.data);
          file.data = longer;
        }
        file.data.set(data, position);
      },
      size: async () => file.data.length,
      sync: async () => {
        file.durable = file.data.slice();
      },
      finish: async () => {
        file.durable = file.data.slice();
      },
      close: async () => {},
    };
  }

  resolve = (path: string) => resolve(path);

  async makeFolder(path: string) {
    let folder = this.#root;
    for (const part of resolve(path).split(sep).filter(Boolean)) {
      const next = folder.children.get(part) ?? { children: new Map(), durable: new Map() };
      if (!isFolder(next)) fail("ENOTDIR", path);
      folder.children.set(part, next);
      folder = next;
    }
  }

  async list(path: string): Promise<FolderEntry[]> {
    return [...this.#folder(path).children].map(([name, node]) => ({ name, kind: isFolder(node) ? "folder" : "file" }));
  }

  async kind(path: string) {
    const node = this.#node(path);
    return node && (isFolder(node) ? ("folder" as const) : ("file" as const));
  }

  async modified(_path: string) {
    return 0;
  }

  async rename(from: string, to: string) {
    const node = this.#node(from) ?? fail("ENOENT", from);
    const existing = this.#node(to);
    if (isFolder(existing) && existing.children.size > 0) fail("ENOTEMPTY", to);
    this.#folder(dirname(from)).children.delete(MemoryFileSystem.#name(from));
    this.#folder(dirname(to)).children.set(MemoryFileSystem.#name(to), node);
  }

  async remove(path: string) {
    const parent = this.#node(dirname(path));
    if (isFolder(parent)) parent.children.delete(MemoryFileSystem.#name(path));
  }

  async syncFolder(path: string) {
    const folder = this.#folder(path);
    folder.durable = new Map(folder.children);
  }

  /** The disk as the next process would find it. */
  afterCrash({ contents, names }: CrashKind): MemoryFileSystem {
    const survivor = (node: Node): Node => {
      if (!isFolder(node)) {
        const data = (contents ? node.data : node.durable).slice();
        return { data, durable: data.slice() };
      }
      const children = new Map(
        [...(names ? node.children : node.durable)].map(([name, child]) => [name, survivor(child)]),
      );
      return { children, durable: new Map(children) };
    };
    const after = new MemoryFileSystem();
    after.#root = survivor(this.#root) as FolderNode;
    return after;
  }
}
