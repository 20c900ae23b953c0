/** Protocol buffers and TFRecord, as far as TensorBoard's event files need them. */

const encoder = /* @__PURE__ */ new TextEncoder();
const double = /* @__PURE__ */ new Float64Array(1);
const float = /* @__PURE__ */ new Float32Array(1);
const bytesOfDouble = /* @__PURE__ */ new Uint8Array(double.buffer);
const bytesOfFloat = /* @__PURE__ */ new Uint8Array(float.buffer);

/** A message that is written: fields in the order in which they are added. */
export class Message {
  readonly bytes: number[] = [];

  /** A whole number from 0 on. */
  varint(field: number, value: number): this {
    return this.#number(8 * field).#number(value);
  }

  double(field: number, value: number): this {
    double[0] = value;
    return this.#number(8 * field + 1).append(bytesOfDouble);
  }

  float(field: number, value: number): this {
    return this.#number(8 * field + 5).floatAlone(value);
  }

  /** The number of a float, whose field was appended. */
  floatAlone(value: number): this {
    float[0] = value;
    return this.append(bytesOfFloat);
  }

  doubles(field: number, values: readonly number[]): this {
    return this.#block(field, new Uint8Array(Float64Array.from(values).buffer));
  }

  text(field: number, value: string): this {
    return this.#block(field, encoder.encode(value));
  }

  message(field: number, { bytes }: Message): this {
    return this.#block(field, bytes);
  }

  #block(field: number, bytes: ArrayLike<number>): this {
    return this.#number(8 * field + 2)
      .#number(bytes.length)
      .append(bytes);
  }

  /** Bytes as they are. */
  append(bytes: ArrayLike<number>): this {
    for (let i = 0; i < bytes.length; i++) this.bytes.push(bytes[i]!);
    return this;
  }

  #number(value: number): this {
    let rest = value;
    for (; rest >= 128; rest = Math.floor(rest / 128)) this.bytes.push((rest % 128) + 128);
    this.bytes.push(rest);
    return this;
  }
}

const TABLE = /* @__PURE__ */ Uint32Array.from({ length: 256 }, (_, i) => {
  let crc = i;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  return crc;
});

/** CRC-32C (Castagnoli), masked as TFRecord stores it: rotated right by 15 bits, plus a constant. */
export function maskedCrc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ TABLE[(crc ^ byte) & 0xff]!;
  crc = ~crc >>> 0;
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}

/** A TFRecord: length (64 bits), its checksum, the message, its checksum; little-endian. */
export function recordOf({ bytes }: Message): Uint8Array {
  const record = new Uint8Array(bytes.length + 16);
  const view = new DataView(record.buffer);
  view.setUint32(0, bytes.length, true);
  view.setUint32(8, maskedCrc32c(record.subarray(0, 8)), true);
  record.set(bytes, 12);
  view.setUint32(12 + bytes.length, maskedCrc32c(record.subarray(12, 12 + bytes.length)), true);
  return record;
}
