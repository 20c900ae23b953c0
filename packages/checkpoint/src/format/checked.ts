/** Checksums on the way in: a box read from its first byte to its last is verified, in however many pieces it is read. */
import { OptError } from "@opt/core";
import type { Checksum } from "../stores/file-system";
import { crc32, crcText, joinCrc32 } from "./crc32";
import { LazyTensor, type SourceBox, type SourceTensor } from "./source";

/** Read at once: what a store gives in memory of its own is given back soon. */
const PIECE = 4 << 20;

/** What has been read so far, and what of it no checksum vouches for. */
export class Verification {
  readonly #open = new Set<CheckedBox>();
  bytesRead = 0;

  /** Bytes of the box were read. */
  read(box: CheckedBox, bytes: number, isVerified: boolean | undefined): void {
    this.bytesRead += bytes;
    if (isVerified) this.#open.delete(box);
    else this.#open.add(box);
  }

  /** The tensors of which some box was read in part, out of order, or has no checksum. */
  unverified(): string[] {
    return [...new Set([...this.#open].map(({ tensor }) => tensor))];
  }
}

export function corruptBox(tensor: string, box: SourceBox, got: number): OptError {
  const range = box.byteOffset === undefined ? "" : `, bytes ${box.byteOffset} to ${box.byteOffset + box.byteLength}`;
  return new OptError(
    "CORRUPT",
    `tensor ${JSON.stringify(tensor)} in ${box.file}${range}`,
    `checksum must be ${crcText(box.crc32!)}, got ${crcText(got)}.`,
    "The bytes have changed since they were saved: restore the file, or use another step.",
  );
}

/** The checksum of what had `before`, and then of bytes whose `own` is known if whoever read them took it. */
export function extended(before: number, bytes: Uint8Array, own: number | undefined): number {
  return own === undefined ? crc32(bytes, before) : joinCrc32(before, own, bytes.length);
}

/** The same tensor, whose boxes throw CORRUPT as soon as their last byte shows that one has changed. */
export function checkedTensor(tensor: SourceTensor, verification: Verification): SourceTensor {
  return new LazyTensor(tensor, () => tensor.boxes.map((box) => new CheckedBox(tensor.name, box, verification)));
}

class CheckedBox implements SourceBox {
  readonly tensor: string;
  readonly #box: SourceBox;
  readonly #verification: Verification;
  /** What has been read from the first byte on without a gap, and its checksum. */
  #next = 0;
  #crc = 0;
  #isVerified = false;

  constructor(tensor: string, box: SourceBox, verification: Verification) {
    this.tensor = tensor;
    this.#box = box;
    this.#verification = verification;
  }

  get offset() {
    return this.#box.offset;
  }

  get size() {
    return this.#box.size;
  }

  get byteLength() {
    return this.#box.byteLength;
  }

  get file() {
    return this.#box.file;
  }

  get stored() {
    return this.#box.stored;
  }

  accept(bytes: Uint8Array, start: number, own?: number): void {
    const box = this.#box;
    // Read again from the start: verified again.
    if (start === 0) [this.#next, this.#crc] = [0, 0];
    if (box.crc32 !== undefined && start === this.#next) {
      this.#crc = extended(this.#crc, bytes, own);
      this.#next += bytes.length;
    } else this.#next = Number.NaN;
    if (this.#next === box.byteLength) {
      if (this.#crc !== box.crc32) throw corruptBox(this.tensor, box, this.#crc);
      this.#isVerified = true;
    }
    this.#verification.read(this, bytes.length, this.#isVerified || box.isChecked);
  }

  async read(target: Uint8Array, start: number): Promise<void> {
    let done = 0;
    do {
      const piece = target.subarray(done, done + PIECE);
      const sum: Checksum = {};
      await this.#box.read(piece, start + done, sum);
      this.accept(piece, start + done, sum.crc32);
      done += PIECE;
    } while (done < target.length);
  }
}
