/** Writes one safetensors file piece by piece, taking its checksums on the way. */

import { OptError } from "@opt/core";
import { platform } from "#platform";
import { crc32 } from "../../format/crc32";
import { recordShard, type ShardBox, sha256Of, shardHeader, type WrittenShard } from "../../format/shard";
import type { FilePool } from "../../stores/file-pool";
import { diskError, type FileSystem, type OpenFile } from "../../stores/file-system";
import { join } from "../../stores/path";
import { PAGE } from "../../stores/scratch";

/** Bytes handed to the disk at once, and how many such pieces of a file are on their way or being filled. */
const BUFFER = 2 << 20;
const BUFFERS = 4;

/** Writes the boxes of one file through a few buffers: small boxes are one write, and the disk works while the next buffer fills. */
export class ShardWriter {
  readonly name: string;
  readonly #path: string;
  readonly #fileSystem: FileSystem;
  readonly #pool: FilePool;
  readonly #begins: Float64Array;
  /** Per box the bytes that have been taken, and their checksum. */
  readonly #taken: Float64Array;
  readonly #crcs: Uint32Array;
  readonly #checksums: boolean;
  readonly #bufferBytes: number;
  readonly #isStable: boolean;
  /** Of all buffers; how many there are, and where those begin that wait for bytes. */
  #memory: Uint8Array | undefined;
  #made = 0;
  readonly #free: number[] = [];
  readonly #header: { bytes: Uint8Array | undefined; readonly byteLength: number; readonly crc32: number };
  #buffer: Uint8Array | undefined;
  /** Where in the memory and in the file the buffer begins, and how much of it is filled. */
  #begin = 0;
  #position = 0;
  #filled = 0;
  /** On their way, oldest first. */
  readonly #writes: Promise<void>[] = [];
  /** Bytes wait for a buffer: what comes next waits for them. */
  #resting: Promise<void> | undefined;
  #failure: { readonly error: unknown } | undefined;
  readonly #fail = (error: unknown) => {
    this.#failure ??= { error };
  };

  /** `isStable`: nobody changes bytes that are being written: no copy. `merged`: metadata of a file that no manifest describes. */
  constructor(
    folder: string,
    name: string,
    boxes: readonly ShardBox[],
    store: { fileSystem: FileSystem; pool: FilePool; bufferBytes?: number; isStable?: boolean },
    merged?: { readonly metadata: Record<string, string> },
  ) {
    this.name = name;
    this.#path = join(folder, name);
    this.#fileSystem = store.fileSystem;
    this.#pool = store.pool;
    this.#isStable = store.isStable ?? false;
    const { bytes, begins } = shardHeader(boxes, merged?.metadata);
    this.#header = { bytes, byteLength: bytes.length, crc32: crc32(bytes) };
    this.#begins = begins;
    this.#checksums = merged === undefined;
    this.#taken = new Float64Array(boxes.length);
    this.#crcs = new Uint32Array(boxes.length);
    this.#bufferBytes = Math.min(store.bufferBytes ?? BUFFER, Math.max(1, this.byteLength - bytes.length));
  }

  get byteLength(): number {
    return this.#begins.at(-1)!;
  }

  async create(): Promise<void> {
    await this.#disk("creating", async () => {
      const file = await this.#fileSystem.open(this.#path, "create", this.byteLength);
      try {
        await file.write(this.#header.bytes!, 0);
      } finally {
        await file.close();
      }
    });
    this.#header.bytes = undefined; // of many files at once they would fill the memory
  }

  /** Takes the next bytes of a box, front to back; they are copied before it returns, or before its promise resolves. */
  write(box: number, bytes: Uint8Array): Promise<void> | undefined {
    if (this.#resting) return this.#resting.then(() => this.write(box, bytes));
    const start = this.#taken[box]!;
    this.#taken[box] = start + bytes.length;
    const position = this.#begins[box]! + start;
    if (this.#isStable && bytes.length >= this.#bufferBytes) return this.#writeThrough(box, bytes, position);
    if (this.#buffer && position !== this.#position + this.#filled) this.#flush();
    const done = this.#take(box, bytes, position);
    if (done === bytes.length) return undefined;
    const end = () => {
      this.#resting = undefined;
    };
    const rest = this.#takeRest(box, bytes.subarray(done), position + done);
    this.#resting = rest.then(end, end);
    return rest;
  }

  async #writeThrough(box: number, bytes: Uint8Array, position: number): Promise<void> {
    if (this.#buffer) this.#flush();
    const write = this.#pool.use(this.#path, (file) => file.write(bytes, position));
    write.catch(() => {}); // awaited below
    if (this.#checksums) this.#crcs[box] = crc32(bytes, this.#crcs[box]);
    await this.#disk("writing", () => write);
  }

  async #takeRest(box: number, bytes: Uint8Array, position: number): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      // As many buffers as there are, and no more: the disk sets the pace.
      while (this.#free.length === 0) await this.#writes.shift();
      this.#rethrow();
      done += this.#take(box, bytes.subarray(done), position + done);
    }
  }

  /** Copies what there is room for without waiting; returns how much. */
  #take(box: number, bytes: Uint8Array, position: number): number {
    let done = 0;
    while (done < bytes.length) {
      if (!this.#buffer) {
        this.#position = position + done;
        this.#buffer = this.#freeBuffer();
        if (!this.#buffer) return done;
      }
      const room = this.#buffer.length - this.#filled;
      const piece = done === 0 && bytes.length <= room ? bytes : bytes.subarray(done, done + room);
      const copy = this.#buffer.subarray(this.#filled, this.#filled + piece.length);
      copy.set(piece);
      if (this.#checksums) this.#crcs[box] = crc32(copy, this.#crcs[box]);
      this.#filled += piece.length;
      done += piece.length;
      if (this.#filled === this.#buffer.length) this.#flush();
    }
    return done;
  }

  /** For what comes at `#position`: pages of the file are pages of the memory. */
  #freeBuffer(): Uint8Array | undefined {
    if (this.#free.length === 0 && this.#made === BUFFERS) return undefined;
    const bytes = this.#bufferBytes;
    this.#memory ??= platform.pages(BUFFERS * bytes);
    this.#begin = this.#free.pop() ?? this.#made++ * bytes;
    const skew = bytes % PAGE === 0 ? this.#position % PAGE : 0;
    return this.#memory.subarray(this.#begin + skew, this.#begin + bytes);
  }

  #flush(): void {
    const buffer = this.#buffer!;
    const bytes = buffer.subarray(0, this.#filled);
    const [begin, position] = [this.#begin, this.#position];
    this.#buffer = undefined;
    this.#filled = 0;
    const write = (file: OpenFile) => file.write(bytes, position);
    this.#writes.push(
      this.#disk("writing", () => this.#pool.use(this.#path, write))
        .catch(this.#fail)
        .then(() => void this.#free.push(begin)),
    );
  }

  #rethrow(): void {
    if (this.#failure) throw this.#failure.error;
  }

  /** Returns when nothing is on its way to the disk any more. */
  async settle(): Promise<void> {
    await Promise.all(this.#writes);
  }

  /** Makes the file durable and tells what was written. */
  async finish(options: { sha256?: boolean } = {}): Promise<WrittenShard> {
    this.#taken.forEach((taken, i) => {
      const wanted = this.#begins[i + 1]! - this.#begins[i]!;
      if (taken === wanted) return;
      throw new OptError("INTERNAL", this.name, `box ${i} has ${taken} of ${wanted} bytes.`);
    });
    if (this.#buffer) this.#flush();
    await this.settle();
    this.#rethrow();
    const sha256 = await this.#disk("syncing", () =>
      this.#pool.use(this.#path, async (file) => {
        await file.finish();
        return options.sha256 ? sha256Of(file, this.byteLength) : undefined;
      }),
    );
    return recordShard(this.name, this.#header, this.#begins, this.#crcs, sha256);
  }

  async #disk<T>(doing: string, body: () => Promise<T>): Promise<T> {
    try {
      return await body();
    } catch (error) {
      throw diskError(error, this.#path, doing);
    }
  }
}
