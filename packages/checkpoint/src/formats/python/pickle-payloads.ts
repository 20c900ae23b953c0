/** The numbers, strings and bytes of a pickle, as its opcodes spell them. */
import type { ByteCursor } from "../bytes/cursor";
import { latin1 } from "../bytes/latin1";
import { PickleFloat, PickleRange } from "./pickle-objects";

// Beyond these lengths a payload stays where it is; integers longer than any counter are no data of ours.
const LONG_PAYLOAD = 1024;
const LONG_TEXT = 64 * 1024;
const LONGEST_INTEGER = 256;

/** More than an opcode and what it reads at once. */
export const LONGEST_STEP = LONG_TEXT + 1024;

export class PicklePayloads {
  readonly #text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

  constructor(private readonly cursor: ByteCursor) {}

  integer(length: number): number | bigint {
    if (length > LONGEST_INTEGER) throw this.cursor.corrupt(`an integer of ${length} bytes is named`);
    const bytes = this.cursor.take(length);
    let value = 0n;
    for (let i = length - 1; i >= 0; i--) value = (value << 8n) | BigInt(bytes[i]!);
    return narrow(BigInt.asIntN(Math.max(1, length * 8), value));
  }

  string(length: number): string | PickleRange {
    if (length > LONG_TEXT) return this.#range("text", length);
    const bytes = this.cursor.take(length);
    try {
      return this.#text.decode(bytes);
    } catch {
      // Lone surrogates (Python's surrogatepass) have no UTF-8: they read as U+FFFD.
      return new TextDecoder().decode(bytes);
    }
  }

  bytes(length: number): Uint8Array | PickleRange {
    return length > LONG_PAYLOAD ? this.#range("bytes", length) : this.cursor.take(length).slice();
  }

  /** What Python 2 wrote for str. */
  byteString(length: number): string | PickleRange {
    return length > LONG_PAYLOAD ? this.#range("bytes", length) : latin1(this.cursor.take(length));
  }

  line(): string {
    let line = "";
    for (let byte = this.cursor.uint8(); byte !== 0x0a; byte = this.cursor.uint8()) {
      if (line.length >= LONG_PAYLOAD) throw this.cursor.corrupt("a line of the pickle does not end");
      line += String.fromCharCode(byte);
    }
    return line;
  }

  #range(kind: "bytes" | "text", length: number): PickleRange {
    const range = new PickleRange(kind, this.cursor.position, length);
    this.cursor.skip(length);
    return range;
  }
}

export function float(value: number): number | PickleFloat {
  return Number.isInteger(value) ? new PickleFloat(value) : value;
}

function narrow(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}
