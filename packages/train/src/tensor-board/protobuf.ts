/** Protocol buffers, as far as TensorBoard's events need them: fields in the order in which they are added. */

const encoder = /* @__PURE__ */ new TextEncoder();

/** A message that is written. */
export class Message {
  #bytes = new Uint8Array(64);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;

  /** A whole number from 0 on. */
  varint(field: number, value: number): this {
    this.#tag(field, 0, 10);
    this.#varint(value);
    return this;
  }

  double(field: number, value: number): this {
    this.#tag(field, 1, 8);
    this.#view.setFloat64(this.#length, value, true);
    this.#length += 8;
    return this;
  }

  float(field: number, value: number): this {
    this.#tag(field, 5, 4);
    this.#view.setFloat32(this.#length, value, true);
    this.#length += 4;
    return this;
  }

  doubles(field: number, values: readonly number[]): this {
    return this.bytes(field, new Uint8Array(Float64Array.from(values).buffer));
  }

  text(field: number, value: string): this {
    return this.bytes(field, encoder.encode(value));
  }

  message(field: number, value: Message): this {
    return this.bytes(field, value.toBytes());
  }

  bytes(field: number, value: Uint8Array): this {
    this.#tag(field, 2, 10 + value.length);
    this.#varint(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
    return this;
  }

  /** Valid until more is added. */
  toBytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** @param room bytes that follow at most */
  #tag(field: number, type: number, room: number): void {
    const needed = this.#length + 10 + room;
    if (needed > this.#bytes.length) {
      const larger = new Uint8Array(2 * needed);
      larger.set(this.#bytes);
      this.#bytes = larger;
      this.#view = new DataView(larger.buffer);
    }
    this.#varint(8 * field + type);
  }

  #varint(value: number): void {
    let rest = value;
    for (; rest >= 128; rest = Math.floor(rest / 128)) this.#bytes[this.#length++] = (rest % 128) + 128;
    this.#bytes[this.#length++] = rest;
  }
}
