/** Protocol buffers, as far as TensorBoard's events need them: fields in the order in which they are added. */

/** A message that is written. */
export class Message {
  readonly #bytes: number[] = [];

  /** A whole number from 0 on. */
  varint(field: number, value: number): this {
    this.#tag(field, 0);
    this.#varint(value);
    return this;
  }

  double(field: number, value: number): this {
    this.#tag(field, 1);
    this.#bytes.push(...new Uint8Array(Float64Array.of(value).buffer));
    return this;
  }

  float(field: number, value: number): this {
    this.#tag(field, 5);
    this.#bytes.push(...new Uint8Array(Float32Array.of(value).buffer));
    return this;
  }

  doubles(field: number, values: readonly number[]): this {
    return this.bytes(field, new Uint8Array(Float64Array.from(values).buffer));
  }

  text(field: number, value: string): this {
    return this.bytes(field, new TextEncoder().encode(value));
  }

  message(field: number, value: Message): this {
    return this.bytes(field, value.#bytes);
  }

  bytes(field: number, value: ArrayLike<number>): this {
    this.#tag(field, 2);
    this.#varint(value.length);
    for (let i = 0; i < value.length; i++) this.#bytes.push(value[i]!);
    return this;
  }

  toBytes(): Uint8Array {
    return Uint8Array.from(this.#bytes);
  }

  #tag(field: number, type: number): void {
    this.#varint(8 * field + type);
  }

  #varint(value: number): void {
    let rest = value;
    for (; rest >= 128; rest = Math.floor(rest / 128)) this.#bytes.push((rest % 128) + 128);
    this.#bytes.push(rest);
  }
}
