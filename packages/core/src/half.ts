/** Numbers as stored: f16 through a library, bf16 as the upper half of a float32, integers truncated and saturated. */
import { getFloat16, setFloat16 } from "@petamoriken/float16";
import { byteSize, type DType, type TypedArray, viewElements } from "./dtype";

const view = new DataView(new ArrayBuffer(4));

const fromBits: Partial<Record<DType, (stored: number) => number>> = {
  f16(stored) {
    view.setUint16(0, stored);
    return getFloat16(view, 0);
  },
  bf16(stored) {
    view.setUint32(0, stored << 16);
    return view.getFloat32(0);
  },
};

const saturating = (low: number, high: number) => (value: number) =>
  Number.isNaN(value) ? 0 : Math.trunc(Math.min(Math.max(value, low), high));

const toBits: Partial<Record<DType, (value: number) => number>> = {
  i32: saturating(-(2 ** 31), 2 ** 31 - 1),
  u8: saturating(0, 255),
  bool: (value) => (value !== 0 ? 1 : 0),
  f16(value) {
    setFloat16(view, 0, value);
    return view.getUint16(0);
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
