/** Checksums on the way in: a box read from its first byte to its last is verified, in however many pieces it is read. */
import { OptError } from "@opt/core";
import { crc32, crcText } from "./crc32";
import { LazyTensor, type SourceBox, type SourceTensor } from "./source";

/** Read at once; the checksum of one piece is taken while the next is on its way. */
const PIECE = 2 << 20;

/** What has been read so far, and what of it no checksum vouches for. */
export class Verification {
  readonly #open = new Set<CheckedBox>();
  bytesRead = 0;

  /** Bytes of the box were read. */
  read(box: CheckedBox, bytes: number, isVerified: boolean): void {
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

  get byteOffset() {
    return this.#box.byteOffset;
  }

  get crc32() {
    return this.#box.crc32;
  }

  get stored() {
    return this.#box.stored;
  }

  accept(bytes: Uint8Array, start: number): void {
    const box = this.#box;
    const { byteLength } = box;
    // Read again from the start: verified again.
    if (start === 0) [this.#next, this.#crc] = [0, 0];
    if (box.crc32 !== undefined && start === this.#next) {
      this.#crc = crc32(bytes, this.#crc);
      this.#next += bytes.length;
    } else this.#next = Number.NaN;
    if (this.#next === byteLength) {
      if (this.#crc !== box.crc32) throw corruptBox(this.tensor, box, this.#crc);
      this.#isVerified = true;
    }
    this.#verification.read(this, bytes.length, this.#isVerified || (box.isChecked ?? false));
  }

  async read(target: Uint8Array, start: number): Promise<void> {
    let reading = this.#box.read(target.subarray(0, PIECE), start);
    for (let done = 0; done < target.length || done === 0; done += PIECE) {
      await reading;
      const piece = target.subarray(done, done + PIECE);
      const after = done + PIECE;
      if (after < target.length) {
        reading = this.#box.read(target.subarray(after, after + PIECE), start + after);
        reading.catch(() => {}); // awaited in the next turn
      }
      this.accept(piece, start + done);
    }
  }
}
