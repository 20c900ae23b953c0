/** Long text that is written piece by piece, as UTF-8: of all of it no string is made, and its bytes exist once. */

/** Text is encoded when there is so much of it. */
const PIECE = 64 << 10;

/** UTF-8 takes up to three bytes for a unit of a string. */
const WIDEST = 3;

/** A list of numbers as JSON, quicker than the list says it itself. */
export function listText(numbers: readonly number[]): string {
  let text = "[";
  for (let i = 0; i < numbers.length; i++) text += i === 0 ? numbers[i] : `,${numbers[i]}`;
  return `${text}]`;
}

export class TextBytes {
  readonly #encoder = new TextEncoder();
  #bytes: Uint8Array<ArrayBuffer>;
  #filled: number;
  #text = "";

  /** `before` bytes stand before the text, zero. */
  constructor(before = 0) {
    this.#bytes = new Uint8Array(before);
    this.#filled = before;
  }

  add(text: string): void {
    this.#text += text;
    if (this.#text.length >= PIECE) this.#encode();
  }

  get length(): number {
    this.#encode();
    return this.#filled;
  }

  /** All of it, in memory of its own. */
  bytes(): Uint8Array<ArrayBuffer> {
    this.#encode();
    return new Uint8Array(this.#bytes.buffer, 0, this.#filled);
  }

  #encode(): void {
    const needed = this.#filled + WIDEST * this.#text.length;
    if (needed > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(needed, Math.ceil(1.5 * this.#bytes.length)));
      larger.set(this.#bytes.subarray(0, this.#filled));
      this.#bytes = larger;
    }
    this.#filled += this.#encoder.encodeInto(this.#text, this.#bytes.subarray(this.#filled)).written;
    this.#text = "";
  }
}
