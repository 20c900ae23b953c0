/** A pickle's memo. Picklers store every object in it and recall few, so it keeps those that are recalled later. */
import { latin1 } from "../bytes/latin1";
import type { ByteSource } from "../bytes/source";
import { ARGUMENTS, OP } from "./pickle-opcodes";

/** Numbers above the file's length and these are never stored: picklers count their objects. */
const MOST_SPARE = 1 << 16;
const FIRST_PIECE = 4096;
const LARGEST_PIECE = 1 << 20;
const LINE_FEED = 0x0a;

const UNKNOWN = 255;
/** By opcode: the bytes of its number, whether that number is the length of more, and its lines. */
const WIDTHS = Uint8Array.from(ARGUMENTS, (argument) => {
  if (argument === undefined) return UNKNOWN;
  return typeof argument === "number" ? argument : Number(/^length of (\d)$/.exec(argument)?.[1] ?? 0);
});
const LENGTHS = Uint8Array.from(ARGUMENTS, (argument, code) => (typeof argument === "string" ? WIDTHS[code]! : 0));
/** By opcode: its bytes, where they are all that follows and recall nothing; else 0. */
const PLAIN = Uint8Array.from(ARGUMENTS, (argument, code) =>
  typeof argument === "number" && code !== OP.BINGET && code !== OP.LONG_BINGET && code !== OP.STOP ? argument + 1 : 0,
);
const LINES = Uint8Array.from(ARGUMENTS, (argument) => (argument === "two lines" ? 2 : argument === "line" ? 1 : 0));

/** A set of memo numbers, and the place of each among them. */
export class RecalledNumbers {
  count = 0;
  #bits = new Uint32Array(64);
  #before = new Uint32Array(0);

  constructor(private readonly most: number) {}

  has(number: number): boolean {
    return (this.#bits[number >>> 5]! & (1 << (number & 31))) !== 0;
  }

  add(number: number): void {
    if (number > this.most || this.has(number)) return;
    const word = number >>> 5;
    if (word >= this.#bits.length) {
      const larger = new Uint32Array(Math.max(2 * this.#bits.length, word + 1));
      larger.set(this.#bits);
      this.#bits = larger;
    }
    this.#bits[word]! |= 1 << (number & 31);
    this.count++;
  }

  /** How many smaller numbers the set has. It takes no more numbers after the first call. */
  placeOf(number: number): number {
    if (this.#before.length === 0) {
      this.#before = new Uint32Array(this.#bits.length);
      for (let i = 1; i < this.#bits.length; i++) this.#before[i] = this.#before[i - 1]! + ones(this.#bits[i - 1]!);
    }
    return this.#before[number >>> 5]! + ones(this.#bits[number >>> 5]! & ((1 << (number & 31)) - 1));
  }
}

/** How many bits are set. Source: Hacker's Delight, 5-1. */
function ones(word: number): number {
  let count = word - ((word >>> 1) & 0x55555555);
  count = (count & 0x33333333) + ((count >>> 2) & 0x33333333);
  return Math.imul((count + (count >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

/** The memo numbers that the pickle at `begin` recalls. Where it is damaged the search ends: running it finds the same. */
export async function recalledNumbers(source: ByteSource, begin: number): Promise<RecalledNumbers> {
  const recalled = new RecalledNumbers(source.byteLength + MOST_SPARE);
  let piece = new Uint8Array(FIRST_PIECE);
  for (let position = begin, passed = 1; passed > 0 && position < source.byteLength; position += passed) {
    const bytes = piece.subarray(0, source.byteLength - position);
    await source.read(bytes, position);
    passed = passOpcodes(bytes, recalled);
    // Behind a long array there may be little.
    if (passed <= bytes.length && piece.length < LARGEST_PIECE) piece = new Uint8Array(4 * piece.length);
  }
  return recalled;
}

/** Passes opcodes until the pickle ends, or one whose number or line ends behind the piece: how many bytes, or 0 at the end. */
function passOpcodes(bytes: Uint8Array, recalled: RecalledNumbers): number {
  const uint32 = (at: number): number =>
    (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0;
  let at = 0;
  while (at < bytes.length) {
    const opcode = bytes[at]!;
    const plain = PLAIN[opcode]!;
    if (plain > 0) {
      at += plain;
      // Most objects are stored at once.
      if (bytes[at] === OP.MEMOIZE) at++;
      continue;
    }
    const width = WIDTHS[opcode]!;
    if (opcode === OP.STOP || width === UNKNOWN) return 0;
    let end = at + width;
    for (let lines = LINES[opcode]!; lines > 0; lines--) {
      end = bytes.indexOf(LINE_FEED, end + 1);
      if (end < 0) return at;
    }
    if (end >= bytes.length) return at;
    if (opcode === OP.BINGET) recalled.add(bytes[end]!);
    else if (opcode === OP.LONG_BINGET) recalled.add(uint32(at + 1));
    else if (opcode === OP.GET) recalled.add(Number(latin1(bytes.subarray(at + 1, end))));
    at = end + 1;
    const length = LENGTHS[opcode]!;
    if (length === 1) at += bytes[end]!;
    else if (length === 4) at += uint32(at - 4);
    else if (length === 8) at += uint32(at - 8) + uint32(at - 4) * 2 ** 32;
  }
  return at;
}
