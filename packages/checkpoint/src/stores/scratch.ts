/** Memory that work on one piece after another shares, instead of taking new memory for each. */

/** Memory and files are cut alike into pieces of this length, a multiple of what disks ask for. */
export const PAGE = 4096;

/** Whoever needs no more than this gets no more: to clear megabytes takes longer than to read a small file. */
const LITTLE = 16 << 10;

/** Memory for what is read only to be scattered, made when first needed. Readers that do not run at the same time may share it. */
export class Scratch {
  readonly length: number;
  readonly #make: (bytes: number) => Uint8Array;
  #bytes: Uint8Array = new Uint8Array(0);

  constructor(length: number, make: (bytes: number) => Uint8Array = (bytes) => new Uint8Array(bytes)) {
    this.length = length;
    this.#make = make;
  }

  /** `count` equal parts, for work that goes on at the same time. */
  lanes(count: number): Scratch[] {
    return Array.from({ length: count }, () => new Scratch(Math.floor(this.length / count), this.#make));
  }

  take(length = this.length): Uint8Array {
    if (this.#bytes.length < length)
      this.#bytes = this.#make(length > LITTLE ? this.length : Math.min(LITTLE, this.length));
    return this.#bytes.subarray(0, length);
  }
}
