/** Memory that work on one piece after another shares, instead of taking new memory for each. */

/** Memory and files are cut alike into pieces of this length, a multiple of what disks ask for. */
export const PAGE = 4096;

/** Memory for what is read only to be scattered, made when first needed. Readers that do not run at the same time may share it. */
export class Scratch {
  readonly length: number;
  readonly #make: (bytes: number) => Uint8Array;
  #bytes: Uint8Array | undefined;

  constructor(length: number, make: (bytes: number) => Uint8Array = (bytes) => new Uint8Array(bytes)) {
    this.length = length;
    this.#make = make;
  }

  /** One of `count` equal parts, for work that goes on at the same time. */
  lane(number: number, count: number): () => Uint8Array {
    const length = Math.floor(this.length / count);
    return () => this.take(this.length).subarray(number * length, (number + 1) * length);
  }

  take(length: number): Uint8Array {
    this.#bytes ??= this.#make(this.length);
    return this.#bytes.subarray(0, length);
  }
}
