/** Keeps a bounded number of files open, so that a checkpoint of thousands of shards needs no thousands of handles. */
import type { FileSystem, OpenFile } from "./file-system";

const CAPACITY = 64;

interface Pooled {
  readonly file: Promise<OpenFile>;
  users: number;
  isOpen: boolean;
}

/** Those that may have files open. */
const pools = new Set<FilePool>();

/** Who waits until a file is used no more. */
const waiting: (() => void)[] = [];

function goOn(): void {
  for (const resume of waiting.splice(0)) resume();
}

export class FilePool {
  readonly #fileSystem: FileSystem;
  readonly #mode: "read" | "update";
  readonly #open = new Map<string, Pooled>();
  #capacity = CAPACITY;

  constructor(fileSystem: FileSystem, mode: "read" | "update") {
    this.#fileSystem = fileSystem;
    this.#mode = mode;
  }

  /** Runs `body` with the file open. */
  async use<T>(path: string, body: (file: OpenFile) => Promise<T>): Promise<T> {
    const known = this.#open.get(path);
    const pooled = known ?? this.#begin(path);
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
      goOn();
    }
  }

  #begin(path: string): Pooled {
    pools.add(this);
    const opening = this.#fileSystem.open(path, this.#mode);
    const isOpened = (file: OpenFile) => {
      pooled.isOpen = true;
      return file;
    };
    const pooled: Pooled = { file: opening.then(isOpened), users: 0, isOpen: false };
    return pooled;
  }

  /** Those that are open by now. */
  get open(): Pooled[] {
    return [...this.#open.values()].filter(({ isOpen }) => isOpen);
  }

  /** From now on half as many files stay open, so that the next ones, and others, find room. Returns how many were closed. */
  async shrink(): Promise<number> {
    this.#capacity = Math.min(this.#capacity, this.open.length) >> 1;
    return this.#evict();
  }

  async #evict(): Promise<number> {
    let closed = 0;
    for (const [path, pooled] of this.#open) {
      if (this.#open.size <= this.#capacity) break;
      if (pooled.users > 0) continue;
      this.#open.delete(path);
      await (await pooled.file).close();
      closed++;
    }
    return closed;
  }

  async close(): Promise<void> {
    const files = [...this.#open.values()];
    this.#open.clear();
    pools.delete(this);
    const closed = await Promise.allSettled(files.map(async ({ file }) => (await file).close()));
    for (const result of closed) if (result.status === "rejected" && this.#mode === "update") throw result.reason;
  }
}

/** What the system says to a process, or itself, when all are taken. */
const FULL = new Set(["EMFILE", "ENFILE"]);

/** Calls that the system has not answered. */
let opening = 0;

/** Calls `open`, again when there may be room. Who uses a file of a pool must not: it could wait for itself. */
export async function withRoom<T>(open: () => Promise<T>): Promise<T> {
  for (;;) {
    opening++;
    const answer = await open().then(
      (value) => ({ value }),
      (error: NodeJS.ErrnoException) => ({ error }),
    );
    opening--;
    if ("error" in answer && FULL.has(answer.error.code ?? "") && (await makeRoom())) continue;
    goOn();
    if ("error" in answer) throw answer.error;
    return answer.value;
  }
}

/** Closes files, or waits until one is free; false where nobody of this process has any to give. */
async function makeRoom(): Promise<boolean> {
  const closed = await Promise.all([...pools].map((pool) => pool.shrink()));
  if (closed.some((count) => count > 0)) return true;
  const open = [...pools].flatMap((pool) => pool.open);
  if (open.length === 0 && opening === 0) return false;
  if (open.every(({ users }) => users > 0)) await new Promise<void>((resume) => waiting.push(resume));
  return true;
}
