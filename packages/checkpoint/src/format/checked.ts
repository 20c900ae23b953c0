/** Checksums on the way in: a box read from its first byte to its last is verified, in however many pieces it is read. */
import { OptError } from "@opt/core";
import { crc32, crcText } from "./crc32";
import type { SourceBox, SourceTensor } from "./source";

/** Read at once; the checksum of one piece is taken while the next is on its way. */
const PIECE = 4 << 20;

/** What has been read so far, and what of it no checksum vouches for. */
export class Verification {
  readonly #boxes: { readonly tensor: string; readonly verified: () => boolean }[] = [];
  bytesRead = 0;

  watch(tensor: string, verified: () => boolean): void {
    this.#boxes.push({ tensor, verified });
  }

  /** The tensors of which some box was read in part, out of order, or has no checksum. */
  unverified(): string[] {
    return [...new Set(this.#boxes.filter(({ verified }) => !verified()).map(({ tensor }) => tensor))];
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
  return { ...tensor, boxes: tensor.boxes.map((box) => checkedBox(tensor.name, box, verification)) };
}

function checkedBox(tensor: string, box: SourceBox, verification: Verification): SourceBox {
  let next = 0;
  let crc = 0;
  let inOrder = true;
  let verified = false;
  const add = (start: number, piece: Uint8Array) => {
    verification.bytesRead += piece.length;
    if (box.crc32 === undefined) return;
    // Read again from the start: verified again.
    if (start === 0) [next, crc, inOrder] = [0, 0, true];
    inOrder &&= start === next;
    if (!inOrder) return;
    crc = crc32(piece, crc);
    next += piece.length;
    if (next < box.byteLength) return;
    if (crc !== box.crc32) throw corruptBox(tensor, box, crc);
    verified = true;
  };
  let watched = false;
  const read = async (target: Uint8Array, start: number) => {
    if (!watched) verification.watch(tensor, () => verified || (box.byteLength === 0 && box.crc32 !== undefined));
    watched = true;
    let reading = box.read(target.subarray(0, PIECE), start);
    for (let done = 0; done < target.length; done += PIECE) {
      await reading;
      const piece = target.subarray(done, done + PIECE);
      const after = done + PIECE;
      if (after < target.length) {
        reading = box.read(target.subarray(after, after + PIECE), start + after);
        reading.catch(() => {}); // awaited in the next turn
      }
      add(start + done, piece);
    }
  };
  return { ...box, read };
}
