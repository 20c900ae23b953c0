/** Element types, their sizes, their JavaScript arrays and how they mix. */
import { OptError } from "../errors/errors";
import { show } from "../errors/show";

/** What memory holds for kernels. */
export type NumberDType = "f32" | "f64" | "f16" | "bf16" | "i32" | "u8" | "bool";

/** c64 are two f32 numbers, the real part and the imaginary one: kept, moved and optimized, but not computed with (see `viewAsReal`). */
export type DType = NumberDType | "c64";

/** The dtypes in which kernels compute; the others are storage, widened by a `copy` first. */
export type ComputeDType = "f32" | "f64";

export type TypedArray = Float32Array | Float64Array | Int32Array | Uint8Array | Uint16Array;

/** Bytes in an ArrayBuffer of their own: what `fetch`, `Blob` and files take as a body. TypeScript before 5.7 has no word for it. */
export type Bytes = ReturnType<Uint8ArrayConstructor["from"]>;

/** The dtypes of maps, reductions, products, windows and rows by index: in i32 compute devices that lack f64, which holds every i32. */
export type MapDType = ComputeDType | "i32";

/** In order of promotion: the result of mixing two dtypes is the later one, but f16 with bf16 gives f32. */
const DTYPES = ["bool", "u8", "i32", "f16", "bf16", "f32", "f64", "c64"] as const satisfies readonly DType[];

const BYTES: Record<DType, number> = { bool: 1, u8: 1, i32: 4, f16: 2, bf16: 2, f32: 4, f64: 8, c64: 8 };

/** Size of one element in bytes. */
export function byteSize(dtype: DType): number {
  return BYTES[dtype];
}

export function isDType(value: unknown): value is DType {
  return typeof value === "string" && Object.hasOwn(BYTES, value);
}

/** What PyTorch and numpy call them, without the bits; of integers the one that there is. */
const FOREIGN: Readonly<Record<string, string>> = {
  bfloat: "bf16",
  half: "f16",
  double: "f64",
  int: "i32",
  long: "i32",
  uint: "u8",
  byte: "u8",
  boolean: "bool",
  complex: "c64",
  cfloat: "c64",
};

/** The dtype that another library's name (`float32`, `torch.float32`) or other letter case means. */
export function meantDType(name: unknown): DType | undefined {
  if (typeof name !== "string") return undefined;
  const [plain, kind, bits] = /([a-z]+)(\d*)$/.exec(name.toLowerCase()) ?? [];
  const meant = kind === "float" ? `f${bits || 32}` : (FOREIGN[kind!] ?? plain);
  return isDType(meant) ? meant : undefined;
}

/** @throws OptError BAD_DTYPE offering the one that was meant */
export function checkDType(where: string, dtype: unknown): asserts dtype is DType {
  if (isDType(dtype)) return;
  const meant = meantDType(dtype);
  const advice = meant === undefined ? `For example "f32".` : `Did you mean "${meant}"?`;
  throw new OptError("BAD_DTYPE", where, `dtype must be one of ${DTYPES.join(", ")}, got ${show(dtype)}.`, advice);
}

/** The numbers that an element is made of, and how many. */
export function numbersOf(dtype: DType): readonly [dtype: NumberDType, count: number] {
  return dtype === "c64" ? ["f32", 2] : [dtype, 1];
}

/** The smallest and the largest number of an integer dtype. */
export function rangeOf(dtype: DType): readonly [low: number, high: number] | undefined {
  return dtype === "i32" ? [-(2 ** 31), 2 ** 31 - 1] : dtype === "u8" ? [0, 255] : undefined;
}

export function isFloat(dtype: DType): boolean {
  return dtype === "f32" || dtype === "f64" || dtype === "f16" || dtype === "bf16";
}

const SIGNIFICANT_BITS: Partial<Record<DType, number>> = { bf16: 8, f16: 11, f32: 24, f64: 53 };

/** Of a float: it holds all integers up to 2 to the power of it. */
export function significantBits(dtype: DType): number | undefined {
  return SIGNIFICANT_BITS[dtype];
}

/** True for the dtypes that gradients have. */
export function isDifferentiable(dtype: DType): boolean {
  return isFloat(dtype) || dtype === "c64";
}

/** The dtype of the result of an elementwise operation on `a` and `b`, as in PyTorch. */
export function promote(a: DType, b: DType): DType {
  if ((a === "f16" && b === "bf16") || (a === "bf16" && b === "f16")) return "f32";
  return DTYPES.indexOf(a) >= DTYPES.indexOf(b) ? a : b;
}

/** The dtype in which an elementwise operation with this result dtype is computed: f64 for f64 and for i32 (exact), else f32. */
export function computeDType(dtype: DType): ComputeDType {
  return dtype === "f64" || dtype === "i32" ? "f64" : "f32";
}

/** A view of `count` stored elements in `buffer`. f16 and bf16 are seen as their 16-bit patterns, what has a byte an element as bytes, c64 as two numbers each. */
export function viewElements(
  buffer: ArrayBufferLike,
  byteOffset: number,
  count: number,
  dtype: DType | "q8" | "uq8" | "bf16x" | "bf16r" | "f16r",
): TypedArray {
  switch (dtype) {
    case "f32":
      return new Float32Array(buffer, byteOffset, count);
    case "f64":
      return new Float64Array(buffer, byteOffset, count);
    case "i32":
      return new Int32Array(buffer, byteOffset, count);
    case "f16":
    case "bf16":
    case "f16r":
    case "bf16r":
      return new Uint16Array(buffer, byteOffset, count);
    case "c64":
      return new Float32Array(buffer, byteOffset, 2 * count);
    default:
      return new Uint8Array(buffer, byteOffset, count);
  }
}

/** The dtype a typed array is taken as when none is asked for. Plain numbers become f32. */
export function dtypeOfArray(array: ArrayBufferView): DType {
  if (array instanceof Float32Array) return "f32";
  if (array instanceof Float64Array) return "f64";
  if (array instanceof Int32Array) return "i32";
  if (array instanceof Uint8Array || array instanceof Uint8ClampedArray) return "u8";
  throw new OptError(
    "BAD_DTYPE",
    "tensor",
    `a typed array must be a Float32Array, Float64Array, Int32Array or Uint8Array, got ${show(array)}.`,
    "Convert it, or pass f16 and bf16 bits by tensorFromBytes.",
  );
}
