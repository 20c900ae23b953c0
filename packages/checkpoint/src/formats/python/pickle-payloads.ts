/** The numbers, strings and bytes of a pickle, as its opcodes spell them. Only what is not in memory yet waits. */
import type { ByteCursor } from "../bytes/cursor";
import { latin1 } from "../bytes/latin1";
import { PickleFloat, PickleRange } from "./pickle-objects";

// Beyond these lengths a payload stays where it is; integers longer than any counter are no data of ours.
const LONG_PAYLOAD = 1024;
const LONG_TEXT = 64 * 1024;
const LONGEST_INTEGER = 256;

export class PicklePayloads {
  readonly #cursor: ByteCursor;
  readonly #text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

  constructor(cursor: ByteCursor) {
    this.#cursor = cursor;
  }

  integer(length: number): unknown {
    if (length > LONGEST_INTEGER) throw this.#cursor.corrupt(`an integer of ${length} bytes is named`);
    return this.#read(length, (bytes) => {
      let value = 0n;
      for (let i = bytes.length - 1; i >= 0; i--) value = (value << 8n) | BigInt(bytes[i]!);
      return narrow(BigInt.asIntN(Math.max(1, bytes.length * 8), value));
    });
  }

  string(length: number): unknown {
    if (length > LONG_TEXT) return this.#range("text", length);
    return this.#read(length, (bytes) => {
      try {
        return this.#text.decode(bytes);
      } catch {
        // Lone surrogates (Python's surrogatepass) have no UTF-8: they read as U+FFFD.
        return new TextDecoder().decode(bytes);
      }
    });
  }

  bytes(length: number): unknown {
    if (length > LONG_PAYLOAD) return this.#range("bytes", length);
    return this.#read(length, (bytes) => bytes.slice());
  }

  /** What Python 2 wrote for str. */
  byteString(length: number): unknown {
    if (length > LONG_PAYLOAD) return this.#range("bytes", length);
    return this.#read(length, latin1);
  }

  async line(): Promise<string> {
    let line = "";
    for (;;) {
      await this.#cursor.need(1);
      const byte = this.#cursor.uint8();
      if (byte === 0x0a) return line;
      if (line.length >= LONG_PAYLOAD) throw this.#cursor.corrupt("a line of the pickle does not end");
      line += String.fromCharCode(byte);
    }
  }

  async decimal(): Promise<boolean | number | bigint> {
    const line = await this.line();
    if (line === "00" || line === "01") return line === "01";
    if (!/^-?\d+L?$/.test(line)) throw this.#cursor.corrupt("an integer has no digits");
    return narrow(BigInt(line.replace("L", "")));
  }

  #range(kind: "bytes" | "text", length: number): PickleRange {
    const range = new PickleRange(kind, this.#cursor.position, length);
    this.#cursor.skip(length);
    return range;
  }

  #read<T>(length: number, read: (bytes: Uint8Array) => T): T | Promise<T> {
    if (this.#cursor.has(length)) return read(this.#cursor.take(length));
    return this.#cursor.need(length).then(() => read(this.#cursor.take(length)));
  }
}

export function float(value: number): number | PickleFloat {
  return Number.isInteger(value) ? new PickleFloat(value) : value;
}

function narrow(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}
