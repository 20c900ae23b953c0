/** Keeps a bounded number of files open, so that a checkpoint of thousands of shards needs no thousands of handles. */
import type { FileSystem, OpenFile } from "./file-system";

const CAPACITY = 64;

interface Pooled {
  readonly file: Promise<OpenFile>;
  users: number;
}

export class FilePool {
  readonly #fileSystem: FileSystem;
  readonly #mode: "read" | "update";
  readonly #open = new Map<string, Pooled>();

  constructor(fileSystem: FileSystem, mode: "read" | "update") {
    this.#fileSystem = fileSystem;
    this.#mode = mode;
  }

  /** Runs `body` with the file open. */
  async use<T>(path: string, body: (file: OpenFile) => Promise<T>): Promise<T> {
    const known = this.#open.get(path);
    const pooled = known ?? { file: this.#fileSystem.open(path, this.#mode), users: 0 };
    pooled.users++;
    // The order of a Map is that of insertion: what was used last stands last.
    if (known) this.#open.delete(path);
    this.#open.set(path, pooled);
    try {
      const file = await pooled.file.catch((error: unknown) => {
        if (this.#open.get(path) === pooled) this.#open.delete(path);
        throw error;
      });
      if (!known) await this.#evict();
      return await body(file);
    } finally {
      pooled.users--;
    }
  }

  async #evict(): Promise<void> {
    for (const [path, pooled] of this.#open) {
      if (this.#open.size <= CAPACITY) return;
      if (pooled.users > 0) continue;
      this.#open.delete(path);
      await (await pooled.file).close();
    }
  }

  async close(): Promise<void> {
    const files = [...this.#open.values()];
    this.#open.clear();
    const closed = await Promise.allSettled(files.map(async ({ file }) => (await file).close()));
    for (const result of closed) if (result.status === "rejected" && this.#mode === "update") throw result.reason;
  }
}
