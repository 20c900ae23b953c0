/** Writes one safetensors file piece by piece, taking its checksums on the way. */

import { OptError } from "@opt/core";
import { platform } from "#platform";
import type { Box } from "../layout/box";
import type { FilePool } from "../stores/file-pool";
import { diskError, type FileSystem, type OpenFile } from "../stores/file-system";
import { join } from "../stores/path";
import { crc32, joinCrc32 } from "./crc32";
import type { StoredDType } from "./dtype";
import { encodeSafetensorsHeader, type SafetensorsEntry } from "./safetensors";

/** The file of a rank. A save that may replace another gives its files a `tag`, so that no reader of the old ones reads the new. */
export function shardName(rank: number, tag?: string): string {
  return `rank-${String(rank).padStart(5, "0")}${tag === undefined ? "" : `-${tag}`}.safetensors`;
}

/** A box that a file is to hold. */
export interface ShardBox {
  readonly tensor: string;
  readonly dtype: StoredDType;
  readonly box: Box;
}

/** What a manifest says about a file as a whole. */
export interface FileRecord {
  readonly name: string;
  readonly byteLength: number;
  /** Of everything before the data. */
  readonly headerLength: number;
  readonly headerCrc32: number;
  /** Of all bytes. */
  readonly crc32: number;
  readonly sha256?: string;
}

export interface WrittenBox {
  readonly byteOffset: number;
  readonly byteLength: number;
  readonly crc32: number;
}

/** Bytes handed to the disk at once: checksums of one piece are taken while the one before is being written. */
const PIECE = 4 << 20;

/** After this many bytes the disk is asked to begin, so that little is left to wait for at the end. */
const SYNC_EVERY = 32 << 20;

/** Two boxes of one tensor in one file need distinct keys; the first keeps the tensor's name. */
function keysOf(boxes: readonly ShardBox[]): string[] {
  const taken = new Set(boxes.map(({ tensor }) => tensor));
  const seen = new Set<string>();
  return boxes.map(({ tensor }) => {
    let key = tensor;
    for (let n = 1; seen.has(key); n++) {
      const candidate = `${tensor}#${n}`;
      if (!taken.has(candidate)) key = candidate;
    }
    seen.add(key);
    return key;
  });
}

/**
 * What PyTorch's HuggingFaceStorageReader looks for: where in its tensor each entry begins. It takes a key for a tensor of its own, so the
 * keys of further boxes are left out: it then refuses the file, where it would have given garbage.
 */
function shardMetadata(keys: readonly string[], boxes: readonly ShardBox[]): Record<string, string> {
  const first = boxes.flatMap(({ tensor, box }, i) => (keys[i] === tensor ? [[tensor, box.offset] as const] : []));
  const offsets = Object.fromEntries(first.map(([key, offset]) => [key, { saved_offsets: offset }]));
  return { format: "pt", DCP_VERSION: "1.0", DCP_SHARDING_INFO: JSON.stringify(offsets) };
}

/** The first bytes of a rank's file, and where each box will lie in it. */
export function shardHeader(
  boxes: readonly ShardBox[],
  metadata?: Record<string, string>,
): { bytes: Uint8Array; entries: readonly SafetensorsEntry[] } {
  const keys = keysOf(boxes);
  const tensors = boxes.map(({ dtype, box }, i) => ({ name: keys[i]!, dtype, shape: box.size }));
  return encodeSafetensorsHeader(tensors, metadata ?? shardMetadata(keys, boxes));
}

/** What a manifest says about a file and its boxes, from the checksums of its parts. */
export function recordShard(
  name: string,
  header: Uint8Array,
  entries: readonly SafetensorsEntry[],
  checksums: readonly number[],
  sha256?: string,
): { file: FileRecord; boxes: WrittenBox[] } {
  const headerCrc32 = crc32(header);
  let whole = headerCrc32;
  const boxes = entries.map(({ begin, end }, i) => {
    whole = joinCrc32(whole, checksums[i]!, end - begin);
    return { byteOffset: begin, byteLength: end - begin, crc32: checksums[i]! };
  });
  const sizes = { byteLength: entries.at(-1)?.end ?? header.length, headerLength: header.length };
  return { file: { name, ...sizes, headerCrc32, crc32: whole, ...(sha256 ? { sha256 } : {}) }, boxes };
}

export class ShardWriter {
  readonly name: string;
  readonly #path: string;
  readonly #fileSystem: FileSystem;
  readonly #pool: FilePool;
  readonly #header: Uint8Array;
  readonly #entries: readonly SafetensorsEntry[];
  readonly #progress: { next: number; crc: number }[];
  readonly #checksums: boolean;
  #unsynced = 0;
  #syncing: Promise<void> | undefined;

  /** `merged`: metadata in place of the sharding information; a file that no manifest describes needs no checksums. */
  constructor(
    folder: string,
    name: string,
    boxes: readonly ShardBox[],
    store: { fileSystem: FileSystem; pool: FilePool },
    merged?: { readonly metadata: Record<string, string> },
  ) {
    this.name = name;
    this.#path = join(folder, name);
    this.#fileSystem = store.fileSystem;
    this.#pool = store.pool;
    const { bytes, entries } = shardHeader(boxes, merged?.metadata);
    this.#header = bytes;
    this.#entries = entries;
    this.#checksums = merged === undefined;
    this.#progress = boxes.map(() => ({ next: 0, crc: 0 }));
  }

  /** The length the file will have. */
  get byteLength(): number {
    return this.#entries.at(-1)?.end ?? this.#header.length;
  }

  async create(): Promise<void> {
    await this.#disk("creating", async () => {
      const file = await this.#fileSystem.open(this.#path, "create", this.byteLength);
      try {
        await file.write(this.#header, 0);
      } finally {
        await file.close();
      }
    });
  }

  /** Appends the next bytes of a box; each box must be written from its first byte to its last. */
  async write(box: number, bytes: Uint8Array): Promise<void> {
    const progress = this.#progress[box]!;
    const begin = this.#entries[box]!.begin;
    await this.#disk("writing", () =>
      this.#pool.use(this.#path, async (file) => {
        let written: Promise<void> = Promise.resolve();
        for (let start = 0; start < bytes.length; start += PIECE) {
          const piece = bytes.subarray(start, start + PIECE);
          const position = begin + progress.next;
          progress.next += piece.length;
          const before = written;
          written = file.write(piece, position);
          written.catch(() => {}); // awaited below
          if (this.#checksums) progress.crc = crc32(piece, progress.crc);
          await before;
        }
        await written;
        this.#syncEarly(file, bytes.length);
      }),
    );
  }

  /** Writes whole boxes that follow each other, their bytes end to end, at once. */
  async writeRun(first: number, lengths: readonly number[], bytes: Uint8Array): Promise<void> {
    let begin = 0;
    lengths.forEach((length, i) => {
      const progress = this.#progress[first + i]!;
      if (this.#checksums) progress.crc = crc32(bytes.subarray(begin, begin + length));
      progress.next = length;
      begin += length;
    });
    await this.#disk("writing", () =>
      this.#pool.use(this.#path, async (file) => {
        await file.write(bytes, this.#entries[first]!.begin);
        this.#syncEarly(file, bytes.length);
      }),
    );
  }

  #syncEarly(file: OpenFile, bytes: number): void {
    this.#unsynced += bytes;
    if (this.#unsynced < SYNC_EVERY || this.#syncing) return;
    this.#unsynced = 0;
    const done = () => {
      this.#syncing = undefined;
    };
    // Whether it worked does not matter yet: the sync at the end decides.
    this.#syncing = file.sync().then(done, done);
  }

  /** Makes the file durable and tells what was written. */
  async finish(options: { sha256?: boolean } = {}): Promise<{ file: FileRecord; boxes: WrittenBox[] }> {
    this.#entries.forEach(({ begin, end }, i) => {
      const { next } = this.#progress[i]!;
      if (next === end - begin) return;
      throw new OptError("INTERNAL", this.name, `box ${i} has ${next} of ${end - begin} bytes.`);
    });
    const sha256 = await this.#disk("syncing", () =>
      this.#pool.use(this.#path, async (file) => {
        await this.#syncing;
        await file.finish();
        return options.sha256 ? sha256Of(file, this.byteLength) : undefined;
      }),
    );
    const checksums = this.#progress.map(({ crc }) => crc);
    return recordShard(this.name, this.#header, this.#entries, checksums, sha256);
  }

  async #disk<T>(doing: string, body: () => Promise<T>): Promise<T> {
    try {
      return await body();
    } catch (error) {
      throw diskError(error, this.#path, doing);
    }
  }
}

/** SHA-256 of an open file, as hexadecimal digits. */
export async function sha256Of(
  file: { read(target: Uint8Array, position: number): Promise<number> },
  byteLength: number,
): Promise<string> {
  const hash = await platform.sha256();
  const buffer = new Uint8Array(Math.min(PIECE, byteLength));
  for (let position = 0; position < byteLength; position += buffer.length) {
    const piece = buffer.subarray(0, Math.min(buffer.length, byteLength - position));
    await file.read(piece, position);
    hash.update(piece);
  }
  return hash.digest();
}
