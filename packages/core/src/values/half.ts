/** Numbers as stored: f16 as multiples of a power of two, bf16 as the upper half of a float32, integers truncated and saturated. */
import { byteSize, type DType, rangeOf, type TypedArray, viewElements } from "./dtype";

const view = new DataView(new ArrayBuffer(8));

/** Adding and subtracting it rounds what is below 2^51 to the nearest integer, the even one of two. */
const ROUNDING = 1.5 * 2 ** 52;

const fromBits: Partial<Record<DType, (stored: number) => number>> = {
  f16(stored) {
    const exponent = (stored >> 10) & 31;
    const fraction = stored & 1023;
    const special = fraction === 0 ? Number.POSITIVE_INFINITY : Number.NaN;
    const finite = exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25);
    const magnitude = exponent === 31 ? special : finite;
    return stored & 0x8000 ? -magnitude : magnitude;
  },
  bf16(stored) {
    view.setUint32(0, stored << 16);
    return view.getFloat32(0);
  },
};

function saturating(dtype: "i32" | "u8"): (value: number) => number {
  const [low, high] = rangeOf(dtype)!;
  return (value) => (Number.isNaN(value) ? 0 : Math.trunc(Math.min(Math.max(value, low), high)));
}

const toBits: Partial<Record<DType, (value: number) => number>> = {
  i32: saturating("i32"),
  u8: saturating("u8"),
  bool: (value) => (value !== 0 ? 1 : 0),
  f16(value) {
    if (Number.isNaN(value)) return 0x7e00;
    view.setFloat64(0, value);
    const head = view.getUint16(0);
    const sign = head & 0x8000;
    const magnitude = Math.abs(value);
    if (magnitude >= 65520) return sign | 0x7c00;
    const exponent = Math.max(((head >> 4) & 2047) - 1023, -14);
    const steps = magnitude / 2 ** (exponent - 10) + ROUNDING - ROUNDING; // 1024 of them are the leading bit
    return sign | (((exponent + 14) << 10) + steps);
  },
  /** Nearest even; a NaN stays one. From float64 by way of float32, as PyTorch does. */
  bf16(value) {
    view.setFloat32(0, value);
    const bits = view.getUint32(0);
    if (Number.isNaN(value)) return (bits >>> 16) | 0x40;
    return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
  },
};

const identity = (x: number) => x;

/** The function from a stored element to its number. */
export function fromStored(dtype: DType): (stored: number) => number {
  return fromBits[dtype] ?? identity;
}

/** The function from a number to the element that a dtype stores (typed arrays round to f32 by themselves). */
export function toStored(dtype: DType): (value: number) => number {
  return toBits[dtype] ?? identity;
}

/** Elements as numbers: f16 and bf16 are widened to a Float32Array, exactly; others are returned as they are. */
export function widen(stored: TypedArray, dtype: DType): TypedArray {
  const convert = fromBits[dtype];
  return convert === undefined ? stored : Float32Array.from(stored as Uint16Array, convert);
}

/** Numbers as stored elements of a dtype, always in a new array. */
export function narrow(values: ArrayLike<number>, dtype: DType): TypedArray {
  const stored = viewElements(new ArrayBuffer(values.length * byteSize(dtype)), 0, values.length, dtype);
  const convert = toBits[dtype];
  if (convert === undefined) stored.set(values);
  else for (let i = 0; i < values.length; i++) stored[i] = convert(values[i]!);
  return stored;
}
