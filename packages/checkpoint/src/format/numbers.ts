/** Stored elements as numbers and back: what conversion and comparison with tolerance need. */
import { check } from "@opt/core";
import { bytesPerElement, type StoredDType } from "./dtype";

/** A small float: sign, exponent and mantissa bits, and which patterns are no ordinary numbers. */
interface SmallFloat {
  readonly exponent: number;
  readonly mantissa: number;
  readonly bias: number;
  /** `ieee`: the highest exponent is infinity and NaN; `nanOnly`: only all ones are NaN, there is no infinity. */
  readonly specials: "ieee" | "nanOnly";
}

const SMALL: Partial<Record<StoredDType, SmallFloat>> = {
  F16: { exponent: 5, mantissa: 10, bias: 15, specials: "ieee" },
  BF16: { exponent: 8, mantissa: 7, bias: 127, specials: "ieee" },
  F8_E5M2: { exponent: 5, mantissa: 2, bias: 15, specials: "ieee" },
  F8_E4M3: { exponent: 4, mantissa: 3, bias: 7, specials: "nanOnly" },
};

function decodeSmall(bits: number, { exponent, mantissa, bias, specials }: SmallFloat): number {
  const sign = bits >> (exponent + mantissa) ? -1 : 1;
  const e = (bits >> mantissa) & ((1 << exponent) - 1);
  const m = bits & ((1 << mantissa) - 1);
  const top = (1 << exponent) - 1;
  if (e === top && specials === "ieee") return m === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  if (e === top && m === (1 << mantissa) - 1) return Number.NaN;
  return sign * (e === 0 ? m * 2 ** (1 - bias - mantissa) : (1 + m / 2 ** mantissa) * 2 ** (e - bias));
}

/** The number of 16 bits. */
export const float16 = (bits: number): number => decodeSmall(bits, SMALL.F16!);

/** Rounds to nearest, ties to even. What is too large becomes infinity, or NaN in formats without infinity. */
function encodeSmall(value: number, { exponent, mantissa, bias, specials }: SmallFloat): number {
  const sign = (value < 0 || Object.is(value, -0) ? 1 : 0) << (exponent + mantissa);
  const top = (1 << exponent) - 1;
  const nan =
    specials === "ieee" ? (top << mantissa) | (1 << (mantissa - 1)) : (top << mantissa) | ((1 << mantissa) - 1);
  if (Number.isNaN(value)) return nan;
  const tooLarge = sign | (specials === "ieee" ? top << mantissa : nan);
  const magnitude = Math.abs(value);
  if (magnitude === 0) return sign;
  if (magnitude === Number.POSITIVE_INFINITY) return tooLarge;
  const e = Math.max(1 - bias, Math.floor(Math.log2(magnitude)));
  // log2 may be off by one next to a power of two; the steps below carry into the exponent by themselves.
  const scaled = magnitude / 2 ** (e - mantissa);
  const floor = Math.floor(scaled);
  const rest = scaled - floor;
  const steps = floor + (rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? 1 : 0);
  const bits = steps + ((e + bias - 1) << mantissa);
  const largest = specials === "ieee" ? (top << mantissa) - 1 : (top << mantissa) + (1 << mantissa) - 2;
  return bits > largest ? tooLarge : sign | bits;
}

type Get = (view: DataView, at: number) => number;
type Set = (view: DataView, at: number, value: number) => void;

const whole = (value: number, low: number, high: number) => {
  // NaN has no integer; the nearest one in range is what every other value becomes.
  if (Number.isNaN(value)) return 0;
  return Math.min(high, Math.max(low, Math.trunc(value)));
};

const ACCESS: Partial<Record<StoredDType, [Get, Set]>> = {
  BOOL: [(v, at) => (v.getUint8(at) ? 1 : 0), (v, at, x) => v.setUint8(at, x !== 0 ? 1 : 0)],
  U8: [(v, at) => v.getUint8(at), (v, at, x) => v.setUint8(at, whole(x, 0, 255))],
  I8: [(v, at) => v.getInt8(at), (v, at, x) => v.setInt8(at, whole(x, -128, 127))],
  U16: [(v, at) => v.getUint16(at, true), (v, at, x) => v.setUint16(at, whole(x, 0, 65535), true)],
  I16: [(v, at) => v.getInt16(at, true), (v, at, x) => v.setInt16(at, whole(x, -32768, 32767), true)],
  U32: [(v, at) => v.getUint32(at, true), (v, at, x) => v.setUint32(at, whole(x, 0, 2 ** 32 - 1), true)],
  I32: [(v, at) => v.getInt32(at, true), (v, at, x) => v.setInt32(at, whole(x, -(2 ** 31), 2 ** 31 - 1), true)],
  U64: [
    (v, at) => Number(v.getBigUint64(at, true)),
    (v, at, x) => v.setBigUint64(at, BigInt(whole(x, 0, 2 ** 64 - 2048)), true),
  ],
  I64: [
    (v, at) => Number(v.getBigInt64(at, true)),
    (v, at, x) => v.setBigInt64(at, BigInt(whole(x, -(2 ** 63), 2 ** 63 - 1024)), true),
  ],
  F32: [(v, at) => v.getFloat32(at, true), (v, at, x) => v.setFloat32(at, x, true)],
  F64: [(v, at) => v.getFloat64(at, true), (v, at, x) => v.setFloat64(at, x, true)],
};

for (const dtype of Object.keys(SMALL) as StoredDType[]) {
  const format = SMALL[dtype]!;
  ACCESS[dtype] =
    bytesPerElement(dtype) === 1
      ? [(v, at) => decodeSmall(v.getUint8(at), format), (v, at, x) => v.setUint8(at, encodeSmall(x, format))]
      : [
          (v, at) => decodeSmall(v.getUint16(at, true), format),
          (v, at, x) => v.setUint16(at, encodeSmall(x, format), true),
        ];
}

/** True where elements can be read as numbers. */
export function isNumeric(dtype: StoredDType): boolean {
  return ACCESS[dtype] !== undefined;
}

function access(dtype: StoredDType, bytes: Uint8Array, where: string) {
  const pair = ACCESS[dtype];
  check(pair !== undefined, "UNSUPPORTED", where, () => `${dtype} cannot be read as numbers.`, "Leave it as it is.");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { get: pair[0], set: pair[1], view, width: bytesPerElement(dtype) };
}

/** Element by element as numbers; 64-bit integers above 2^53 are rounded. @throws OptError UNSUPPORTED for complex and exotic float8 */
export function numberReader(dtype: StoredDType, bytes: Uint8Array, where: string): (index: number) => number {
  const { get, view, width } = access(dtype, bytes, where);
  return (index) => get(view, index * width);
}

/** Floats are rounded to nearest even; integers truncated and clamped to their range. @throws OptError UNSUPPORTED as `numberReader` */
export function numberWriter(dtype: StoredDType, bytes: Uint8Array, where: string) {
  const { set, view, width } = access(dtype, bytes, where);
  return (index: number, value: number) => set(view, index * width, value);
}
