/** CRC-32 (ISO-HDLC, the one of zlib and zip), and joining the checksums of two neighbouring pieces without their bytes. */
import { hostIo } from "@opt/core";
import { platform } from "#platform";

/** From this length on the way into native code is short beside the work. */
const LONG = 4096;

/** Of `bytes` that follow others, whose checksum is `before`. */
export function crc32(bytes: Uint8Array, before = 0): number {
  return (bytes.length < LONG ? undefined : hostIo().crc32?.(bytes, before)) ?? platform.crc32(bytes, before);
}

/** As manifests write it: eight lower-case hexadecimal digits. */
export function crcText(crc: number): string {
  return crc.toString(16).padStart(8, "0");
}

/** A polynomial over GF(2) of degree below 32, highest power in bit 0, as the reflected CRC keeps it. */
type Polynomial = number;

const GENERATOR = 0xedb88320;

function multiply(a: Polynomial, b: Polynomial): Polynomial {
  let product = 0;
  for (let bit = 31; bit >= 0; bit--) {
    if ((a >>> bit) & 1) product ^= b;
    b = b & 1 ? (b >>> 1) ^ GENERATOR : b >>> 1;
  }
  return product >>> 0;
}

const ONE: Polynomial = 0x80000000;

/** x^(8 * 2^i) mod the generator: the factor that appending 2^i zero bytes multiplies a checksum by. */
const SHIFTS: Polynomial[] = [0x00800000];
for (let i = 1; i < 53; i++) SHIFTS.push(multiply(SHIFTS[i - 1]!, SHIFTS[i - 1]!));

/** The checksum of A followed by B, from theirs and the length of B in bytes. */
export function joinCrc32(crcOfA: number, crcOfB: number, lengthOfB: number): number {
  let shift = ONE;
  for (let i = 0, rest = lengthOfB; rest > 0; i++, rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) shift = multiply(shift, SHIFTS[i]!);
  }
  return (multiply(shift, crcOfA >>> 0) ^ crcOfB) >>> 0;
}
