/** The element types that files hold: safetensors' names, wider than what kernels compute in. */
import { type DType, OptError } from "@opt/core";

const BYTES = {
  BOOL: 1,
  U8: 1,
  I8: 1,
  F8_E5M2: 1,
  F8_E4M3: 1,
  F8_E8M0: 1,
  F8_E4M3FNUZ: 1,
  F8_E5M2FNUZ: 1,
  I16: 2,
  U16: 2,
  F16: 2,
  BF16: 2,
  I32: 4,
  U32: 4,
  F32: 4,
  I64: 8,
  U64: 8,
  F64: 8,
  C64: 8,
} as const;

export type StoredDType = keyof typeof BYTES;

const STORED_DTYPES = Object.keys(BYTES) as StoredDType[];

/** Those that tensors have, under the same names in small letters. */
const HELD: readonly StoredDType[] = ["F32", "F64", "F16", "BF16", "I32", "U8", "BOOL", "C64"];

/** Size of one element in bytes. */
export function bytesPerElement(dtype: StoredDType): number {
  return BYTES[dtype];
}

/** Size of a whole tensor in bytes. */
export function bytesOf({ dtype, shape }: { readonly dtype: StoredDType; readonly shape: readonly number[] }): number {
  return shape.reduce((bytes, length) => bytes * length, BYTES[dtype]);
}

/** Floating-point numbers, of whatever width. */
export function isFloating(dtype: StoredDType): boolean {
  return /^B?F\d/.test(dtype);
}

export function isStoredDType(value: unknown): value is StoredDType {
  return typeof value === "string" && Object.hasOwn(BYTES, value);
}

/** The stored dtype of a name written either way, `f32` or `F32`. @throws OptError BAD_DTYPE */
export function storedDType(name: string, where: string): StoredDType {
  const upper = name.toUpperCase();
  if (isStoredDType(upper)) return upper;
  const advice = `Use one of ${STORED_DTYPES.join(", ")}.`;
  throw new OptError("BAD_DTYPE", where, `${JSON.stringify(name)} is no dtype.`, advice);
}

/** The tensor dtype of a stored one, or undefined where tensors have none (integers of 64 bits, float8). */
export function tensorDType(dtype: StoredDType): DType | undefined {
  return HELD.includes(dtype) ? (dtype.toLowerCase() as DType) : undefined;
}
