/** Memory that work on one piece after another shares, instead of taking new memory for each. */

/** Memory for what is read only to be scattered, made when first needed. Readers that do not run at the same time may share it. */
export class Scratch {
  readonly length: number;
  #bytes: Uint8Array | undefined;

  constructor(length: number) {
    this.length = length;
  }

  /** One of `count` equal parts, for work that goes on at the same time. */
  lane(number: number, count: number): () => Uint8Array {
    const length = Math.floor(this.length / count);
    return () => this.take(this.length).subarray(number * length, (number + 1) * length);
  }

  take(length: number): Uint8Array {
    this.#bytes ??= new Uint8Array(this.length);
    return this.#bytes.subarray(0, length);
  }
}
