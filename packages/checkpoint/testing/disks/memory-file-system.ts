/** A disk in memory. */
import { dirname, resolve, sep } from "node:path";
import type { FileSystem, FolderEntry, OpenMode } from "../../src/stores/file-system";

interface FileNode {
  data: Uint8Array;
}

interface FolderNode {
  readonly children: Map<string, Node>;
}

type Node = FileNode | FolderNode;

const isFolder = (node: Node | undefined): node is FolderNode => node !== undefined && "children" in node;

function fail(code: string, path: string): never {
  throw Object.assign(new Error(`${code}: ${path}`), { code });
}

export class MemoryFileSystem implements FileSystem {
  #root: FolderNode = { children: new Map() };
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
      else folder.children.set(MemoryFileSystem.#name(path), { data: new Uint8Array(0) });
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
      finish: async () => {},
      close: async () => {},
    };
  }

  resolve = (path: string) => resolve(path);

  async makeFolder(path: string) {
    let folder = this.#root;
    for (const part of resolve(path).split(sep).filter(Boolean)) {
      const next = folder.children.get(part) ?? { children: new Map() };
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
    const target = this.#folder(dirname(to));
    this.#folder(dirname(from)).children.delete(MemoryFileSystem.#name(from));
    target.children.set(MemoryFileSystem.#name(to), node);
  }

  async remove(path: string) {
    const parent = this.#node(dirname(path));
    if (isFolder(parent)) parent.children.delete(MemoryFileSystem.#name(path));
  }

  async syncFolder(path: string) {
    this.#folder(path);
  }
}
