/** Bytes of the WebAssembly binary format (WebAssembly Core Specification, chapter 5). */

export type Code = readonly number[];

/** LEB128 of an unsigned number below 2^32. */
export function unsigned(value: number): number[] {
  const bytes: number[] = [];
  let rest = value >>> 0;
  while (rest >= 0x80) {
    bytes.push((rest & 0x7f) | 0x80);
    rest >>>= 7;
  }
  bytes.push(rest);
  return bytes;
}

/** LEB128 of a signed integer. */
export function signed(value: bigint): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (;;) {
    const byte = Number(rest & 0x7fn);
    rest >>= 7n;
    const signBit = (byte & 0x40) !== 0;
    if ((rest === 0n && !signBit) || (rest === -1n && signBit)) {
      bytes.push(byte);
      return bytes;
    }
    bytes.push(byte | 0x80);
  }
}

/** A length, then the items. */
export function vector(items: readonly Code[]): number[] {
  return [...unsigned(items.length), ...items.flat()];
}

/** UTF-8 text with its length. */
export function name(text: string): number[] {
  const bytes = [...new TextEncoder().encode(text)];
  return [...unsigned(bytes.length), ...bytes];
}

export function float32Bytes(value: number): number[] {
  return [...new Uint8Array(new Float32Array([value]).buffer)];
}

export function float64Bytes(value: number): number[] {
  return [...new Uint8Array(new Float64Array([value]).buffer)];
}
