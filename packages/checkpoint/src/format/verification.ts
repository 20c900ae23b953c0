/** Checksums on the way in: a box whose bytes are all read is verified, in whatever pieces and order they are read. */
import { OptError } from "@opt/core";
import { crc32, crcText, joinCrc32 } from "./crc32";
import type { SelectedTensor, SourceBox, Verifier } from "./source";

interface Sum {
  readonly begin: number;
  readonly end: number;
  readonly crc32: number;
}

/** The checksum of bytes that come in pieces, in any order. */
export class Sums {
  #sums: readonly Sum[] = [];

  add(begin: number, end: number, crc32: number): void {
    if (begin === end) return;
    const [before, after] = [this.#sums.find((one) => one.end === begin), this.#sums.find((one) => one.begin === end)];
    let sum: Sum = { begin, end, crc32 };
    if (before) sum = joined(before, sum);
    if (after) sum = joined(sum, after);
    this.#sums = [...this.#sums.filter((one) => one !== before && one !== after), sum];
  }

  /** Of all bytes from `begin` to `end`; undefined where some have not come. */
  of(begin: number, end: number): number | undefined {
    return begin === end ? 0 : this.#sums.find((one) => one.begin === begin && one.end === end)?.crc32;
  }
}

function joined(a: Sum, b: Sum): Sum {
  return { begin: a.begin, end: b.end, crc32: joinCrc32(a.crc32, b.crc32, b.end - b.begin) };
}

/** What has been read so far, and what of it no checksum vouches for. */
export class Verification implements Verifier {
  readonly #open = new Map<SourceBox, { readonly tensor: string; readonly sums: Sums }>();
  /** Tensors with boxes that are read in part only, or have no checksum. */
  readonly #unproven = new Set<string>();
  bytesRead = 0;

  accept(tensor: string, box: SourceBox, begin: number, bytes: Uint8Array, isSummed: boolean, own?: number): void {
    this.bytesRead += bytes.length;
    if (box.isChecked) return;
    if (!isSummed || box.crc32 === undefined) {
      this.#unproven.add(tensor);
      return;
    }
    let crc: number | undefined = own ?? crc32(bytes);
    if (bytes.length < box.byteLength) {
      const known = this.#open.get(box) ?? { tensor, sums: new Sums() };
      this.#open.set(box, known);
      known.sums.add(begin, begin + bytes.length, crc);
      crc = known.sums.of(0, box.byteLength);
      if (crc === undefined) return;
      this.#open.delete(box);
    }
    if (crc !== box.crc32) throw corruptBox(tensor, box, crc);
  }

  /** The tensors of which some box was read in part, or has no checksum. */
  unverified(): string[] {
    return [...new Set([...this.#unproven, ...[...this.#open.values()].map(({ tensor }) => tensor)])];
  }
}

function corruptBox(tensor: string, box: SourceBox, got: number): OptError {
  const range = box.byteOffset === undefined ? "" : `, bytes ${box.byteOffset} to ${box.byteOffset + box.byteLength}`;
  const where = `tensor ${JSON.stringify(tensor)} in ${box.file}${range}`;
  const advice = "The bytes have changed since they were saved: restore the file, or use another step.";
  return new OptError("CORRUPT", where, `checksum must be ${crcText(box.crc32!)}, got ${crcText(got)}.`, advice);
}

/** All bytes of one of a tensor's boxes, verified and converted as the tensor says. */
export async function readBox({ name, verification, conversion }: SelectedTensor, box: SourceBox): Promise<Uint8Array> {
  const bytes = new Uint8Array(box.byteLength);
  await box.read(bytes, 0);
  verification?.accept(name, box, 0, bytes, true);
  if (!conversion) return bytes;
  const { from, to } = conversion.widths;
  const held = new Uint8Array((bytes.length / from) * to);
  conversion.convert(bytes, held);
  return held;
}
