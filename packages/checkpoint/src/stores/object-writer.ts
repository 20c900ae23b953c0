/** Files on their way to a store of objects: gathered in parts, which are sent when they are full. */
import { check } from "@opt/core";
import { allOf } from "./lanes";

export interface ObjectWriter {
  /** How long the parts are of an object that will have so many bytes, if that is known. */
  partBytes(byteLength: number | undefined): number;
  put(key: string, data: Uint8Array): Promise<void>;
  /** Writes where there is nothing, else returns false. */
  putOnce(key: string, data: Uint8Array): Promise<boolean>;
  /** Begins an object of several parts. */
  begin(key: string): Promise<Upload>;
  /** An object, or a folder that is empty, where the store keeps such; nothing there is fine, a folder that is not empty stays. */
  remove(key: string): Promise<void>;
  /** Uploads of other processes that never ended: their keys' last names, and an end to one. */
  unfinished?(folder: string): Promise<string[]>;
  abort?(key: string): Promise<void>;
}

export interface Upload {
  /** Parts come in any order, each once; all but the last have the same length. The memory of `data` is used again afterwards. */
  part(index: number, data: Uint8Array): Promise<void>;
  finish(parts: number): Promise<void>;
  abort(): Promise<void>;
}

/** Parts on their way at once, for each store. */
export const LANES = 3;

/** Lets a bounded number of bodies run at once, and keeps the memory of their parts for the next. */
export class Lanes {
  readonly #spare: Uint8Array[] = [];
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  memory(length: number): Uint8Array {
    const at = this.#spare.findIndex((bytes) => bytes.length === length);
    return at < 0 ? new Uint8Array(length) : this.#spare.splice(at, 1)[0]!;
  }

  giveBack(bytes: Uint8Array): void {
    if (this.#spare.push(bytes) > LANES) this.#spare.shift();
  }

  /** Resolves when `body` has begun; `done` when it has ended. */
  async begin(body: () => Promise<void>): Promise<{ done: Promise<void> }> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    const done = body().finally(() => {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    });
    done.catch(() => {}); // awaited at the end
    return { done };
  }
}

/** A file on its way: parts in memory until they are full, then sent. */
export class PartBuffer {
  byteLength = 0;
  readonly #key: string;
  readonly #writer: ObjectWriter;
  readonly #lanes: Lanes;
  readonly #expected: number | undefined;
  readonly #partBytes: number;
  readonly #parts = new Map<number, { readonly bytes: Uint8Array; filled: number }>();
  readonly #sent = new Set<number>();
  readonly #sending: Promise<void>[] = [];
  #upload: Promise<Upload> | undefined;

  constructor(key: string, writer: ObjectWriter, lanes: Lanes, expected: number | undefined) {
    this.#key = key;
    this.#writer = writer;
    this.#lanes = lanes;
    this.#expected = expected;
    this.#partBytes = writer.partBytes(expected);
  }

  async write(data: Uint8Array, position: number): Promise<void> {
    for (let done = 0; done < data.length; ) {
      const index = Math.floor((position + done) / this.#partBytes);
      const begin = position + done - index * this.#partBytes;
      const piece = data.subarray(done, done + this.#partBytes - begin);
      const part = this.#part(index);
      part.bytes.set(piece, begin);
      part.filled += piece.length;
      done += piece.length;
      this.byteLength = Math.max(this.byteLength, position + done);
      if (part.filled === this.#partBytes && this.#expected !== this.#partBytes) await this.#send(index);
    }
  }

  #part(index: number) {
    let part = this.#parts.get(index);
    if (!part) {
      // Parts of one length, the last too, so that their memory serves again.
      const length = Math.min(this.#partBytes, this.#expected ?? this.#partBytes);
      part = { bytes: this.#lanes.memory(length), filled: 0 };
      this.#parts.set(index, part);
    }
    return part;
  }

  async #send(index: number): Promise<void> {
    const { bytes, filled } = this.#parts.get(index)!;
    this.#parts.delete(index);
    this.#sent.add(index);
    this.#upload ??= this.#writer.begin(this.#key);
    const upload = await this.#upload;
    const { done } = await this.#lanes.begin(async () => {
      await upload.part(index, bytes.subarray(0, filled));
      this.#lanes.giveBack(bytes);
    });
    this.#sending.push(done);
  }

  async finish(): Promise<void> {
    const count = Math.ceil(this.byteLength / this.#partBytes);
    if (this.#upload === undefined && count <= 1) {
      await this.#writer.put(this.#key, this.#parts.get(0)?.bytes.subarray(0, this.byteLength) ?? new Uint8Array(0));
      return;
    }
    for (const index of [...this.#parts.keys()]) await this.#send(index);
    check(this.#sent.size === count, "INTERNAL", this.#key, () => `${this.#sent.size} of ${count} parts were written.`);
    await allOf(this.#sending);
    await (await this.#upload)!.finish(count);
  }

  async abort(): Promise<void> {
    await Promise.allSettled(this.#sending);
    const upload = await this.#upload?.catch(() => undefined);
    if (upload) return upload.abort();
    // Where beginning has failed, the store may know of an upload all the same: its answer got lost.
    if (this.#upload) await this.#writer.abort?.(this.#key);
  }
}
