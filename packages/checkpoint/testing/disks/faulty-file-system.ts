/** Counts every call to a disk and makes one of them fail. */
import type { FileSystem, OpenFile, OpenMode, UnfinishedFiles } from "../../src/stores/file-system";

export interface Fault {
  /** The call that fails, counted from 0. */
  readonly at: number;
  /** The system's code for the rejection. */
  readonly code?: string;
  /** Where the call is a write: this share of its bytes still arrives. */
  readonly written?: number;
  /** Only calls of this name are counted. */
  readonly only?: string;
}

export class FaultyFileSystem implements FileSystem {
  readonly #inner: FileSystem;
  readonly #fault: Fault | undefined;
  calls = 0;

  constructor(inner: FileSystem, fault?: Fault) {
    this.#inner = inner;
    this.#fault = fault;
  }

  async #call<T>(name: string, body: () => Promise<T>, partly?: (share: number) => Promise<void>): Promise<T> {
    const counts = this.#fault?.only === undefined || this.#fault.only === name;
    const number = counts ? this.calls++ : -1;
    if (number === this.#fault?.at) {
      if (this.#fault.written) await partly?.(this.#fault.written);
      const code = this.#fault.code ?? "EIO";
      throw Object.assign(new Error(`${code}: injected fault at call ${number}, ${name}`), { code });
    }
    return body();
  }

  get isNear(): boolean {
    return this.#inner.isNear ?? false;
  }

  get unfinished(): UnfinishedFiles {
    const inner = this.#inner.unfinished as UnfinishedFiles;
    if (!inner) return inner;
    return {
      list: (folder) => this.#call("list", () => inner.list(folder)),
      discard: (path) => this.#call("discard", () => inner.discard(path)),
      removeEmpty: (folder) => this.#call("removeEmpty", () => inner.removeEmpty(folder)),
      createOnce: (path, data) => this.#call("createOnce", () => inner.createOnce(path, data)),
      memory: (lengths) => inner.memory(lengths),
    };
  }

  async open(path: string, mode: OpenMode): Promise<OpenFile> {
    const file = await this.#call("open", () => this.#inner.open(path, mode));
    return {
      read: (target, position) => this.#call("read", () => file.read(target, position)),
      write: (data, position) =>
        this.#call(
          "write",
          () => file.write(data, position),
          (share) => file.write(data.subarray(0, Math.floor(data.length * share)), position),
        ),
      size: () => this.#call("size", () => file.size()),
      finish: () => this.#call("sync", () => file.finish()),
      close: () => this.#call("close", () => file.close()),
    };
  }

  resolve = (path: string) => this.#inner.resolve(path);
  makeFolder = (path: string) => this.#call("makeFolder", () => this.#inner.makeFolder(path));
  list = (path: string) => this.#call("list", () => this.#inner.list(path));
  kind = (path: string) => this.#call("kind", () => this.#inner.kind(path));
  modified = (path: string) => this.#call("modified", () => this.#inner.modified(path));
  rename = (from: string, to: string) => this.#call("rename", () => this.#inner.rename(from, to));
  remove = (path: string) => this.#call("remove", () => this.#inner.remove(path));
  syncFolder = (path: string) => this.#call("syncFolder", () => this.#inner.syncFolder(path));
}
