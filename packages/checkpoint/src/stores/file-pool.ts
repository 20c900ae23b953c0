/** Keeps a bounded number of files open, so that a checkpoint of thousands of shards needs no thousands of handles. */
import type { FileSystem, OpenFile } from "./file-system";

const CAPACITY = 64;

interface PooledFile {
  readonly file: Promise<OpenFile>;
  users: number;
}

export class FilePool {
  readonly #open = new Map<string, PooledFile>();
  readonly #waiting: (() => void)[] = [];

  constructor(
    private readonly fileSystem: FileSystem,
    private readonly mode: "read" | "update",
  ) {}

  /** Runs `body` with the file open. `body` must use no other file of the pool: it could wait for itself. */
  async use<T>(path: string, body: (file: OpenFile) => Promise<T>): Promise<T> {
    while (!this.#open.has(path) && this.#open.size >= CAPACITY) await this.#makeRoom();
    const pooled = this.#open.get(path) ?? { file: this.fileSystem.open(path, this.mode), users: 0 };
    pooled.users++;
    // The order of a Map is that of insertion: what was used last stands last.
    this.#open.delete(path);
    this.#open.set(path, pooled);
    try {
      const file = await pooled.file.catch((error: unknown) => {
        if (this.#open.get(path) === pooled) this.#open.delete(path);
        throw error;
      });
      return await body(file);
    } finally {
      pooled.users--;
      for (const goOn of this.#waiting.splice(0)) goOn();
    }
  }

  /** Closes the file that was used longest ago, or waits until one is free. */
  async #makeRoom(): Promise<void> {
    for (const [path, { file, users }] of this.#open) {
      if (users > 0) continue;
      this.#open.delete(path);
      return (await file).close();
    }
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  async close(): Promise<void> {
    const files = [...this.#open.values()];
    this.#open.clear();
    const closed = await Promise.allSettled(files.map(async ({ file }) => (await file).close()));
    for (const result of closed) if (result.status === "rejected" && this.mode === "update") throw result.reason;
  }
}
