/** The numbers, strings and bytes of a pickle, as its opcodes spell them. */
import type { ByteCursor } from "../bytes/cursor";
import { latin1 } from "../bytes/latin1";
import { PickleFloat, PickleRange } from "./pickle-objects";

// Beyond these lengths a payload stays where it is; integers longer than any counter are no data of ours.
const LONG_PAYLOAD = 1024;
/** Longer texts stay where they are. */
const LONGEST_TEXT = 64 * 1024;
const LONGEST_INTEGER = 256;
const LONGEST_KNOWN = 256;
const MOST_KNOWN = 50_000;

/** An opcode has at most two. */
const LONGEST_LINE = LONGEST_TEXT / 2;

/** More than an opcode and what it reads at once. */
export const LONGEST_STEP = LONGEST_TEXT + 1024;

export class PicklePayloads {
  readonly #text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  /** Short texts of ASCII that occurred, by their hash: names recur, and picklers often write them anew. */
  readonly #known = new Map<number, string>();

  constructor(private readonly cursor: ByteCursor) {}

  integer(length: number): number | bigint {
    if (length > LONGEST_INTEGER) throw this.cursor.corrupt(`an integer of ${length} bytes is named`);
    const bytes = this.cursor.take(length);
    if (length <= 6) {
      const value = bytes.reduceRight((above, byte) => 256 * above + byte, 0);
      return value >= 256 ** length / 2 ? value - 256 ** length : value;
    }
    let value = 0n;
    for (let i = length - 1; i >= 0; i--) value = (value << 8n) | BigInt(bytes[i]!);
    return narrow(BigInt.asIntN(Math.max(1, length * 8), value));
  }

  string(length: number): string | PickleRange {
    if (length > LONGEST_TEXT) return this.#range("text", length);
    if (length > LONGEST_KNOWN) return this.#decoded(length);
    let hash = length;
    for (let i = 0; i < length; i++) hash = Math.imul(hash, 31) + (this.cursor.byteAhead(i) ?? 0);
    const known = this.#known.get(hash);
    if (known !== undefined && this.#isAhead(known, length)) {
      this.cursor.skip(length);
      return known;
    }
    const text = this.#decoded(length);
    if (this.#known.size < MOST_KNOWN) this.#known.set(hash, text);
    return text;
  }

  #isAhead(text: string, length: number): boolean {
    if (text.length !== length) return false;
    for (let i = 0; i < length; i++) {
      const byte = this.cursor.byteAhead(i);
      if (byte !== text.charCodeAt(i) || byte > 127) return false;
    }
    return true;
  }

  #decoded(length: number): string {
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

  /** One line, and its end. */
  line(): string {
    return this.cursor.line(LONGEST_LINE);
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

/** An integer of digits, with or without Python 2's L; 01 and 00 are true and false to INT. */
export function integerOf(line: string, cursor: ByteCursor): number | bigint {
  const [, digits] = /^\s*(-?\d+)L?\s*$/.exec(line) ?? [];
  if (digits === undefined || digits.length > 2 * LONGEST_INTEGER) throw cursor.corrupt("a line is no integer");
  return narrow(BigInt(digits));
}

const NOT_FINITE: Readonly<Record<string, number>> = { inf: Infinity, "-inf": -Infinity, nan: NaN };

export function floatOf(line: string, cursor: ByteCursor): number | PickleFloat {
  const value = NOT_FINITE[line] ?? Number(line);
  if (Number.isNaN(value) && line !== "nan") throw cursor.corrupt("a line is no float");
  return float(value);
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t" };

/** A text in which backslashes begin what Latin-1 or the line lacks; Python 2's str is in quotes too. */
export function escapedText(line: string, isQuoted: boolean): string {
  if (!isQuoted)
    return line.replace(/\\U([\da-fA-F]{8})|\\u([\da-fA-F]{4})/g, (_, long, short) => character(long ?? short));
  return line.slice(1, -1).replace(/\\(?:x([\da-f]{2})|(.))/gi, (_, code, plain) => {
    return code === undefined ? (ESCAPES[plain] ?? plain) : character(code);
  });
}

const character = (code: string): string => String.fromCodePoint(Math.min(0x10ffff, Number.parseInt(code, 16)));

function narrow(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}
