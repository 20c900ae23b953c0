/** NumPy arrays and scalars as pickles describe them. */
import { bytesPerElement, type StoredDType } from "../../format/dtype";
import { numberReader } from "../../format/numbers";
import { elementCount } from "../../layout/box";
import { isCount } from "../../layout/counts";
import { strides } from "../../plan/runs";
import { corrupt, unsupported } from "../bytes/errors";
import type { ForeignTensor } from "../bytes/foreign-tensor";
import { type ByteSource, checkRange, memorySource, partOf, readBytes } from "../bytes/source";
import { stridedSource } from "../bytes/strided";
import { PickleCall, PickleRange, PickleTuple } from "./pickle-objects";

/** NumPy 1 and 2 call the module differently; some versions pickle through a helper of their own. */
export const NUMPY_GLOBALS = ["numpy.core", "numpy._core"]
  .flatMap((module) => [
    `${module}.multiarray._reconstruct`,
    `${module}.multiarray.scalar`,
    `${module}.numeric._frombuffer`,
  ])
  .concat(["numpy.dtype", "numpy.ndarray"]);

/** Element types as NumPy writes them, without the order of bytes. */
export const NUMPY_DTYPES: Readonly<Record<string, StoredDType>> = {
  b1: "BOOL",
  i1: "I8",
  i2: "I16",
  i4: "I32",
  i8: "I64",
  u1: "U8",
  u2: "U16",
  u4: "U32",
  u8: "U64",
  f2: "F16",
  f4: "F32",
  f8: "F64",
  c8: "C64",
  bfloat16: "BF16",
};

const unread = (path: string, what: string) =>
  unsupported(path, `${what} cannot be read`, "Save numbers in little-endian order.");

/** The array that an object describes, or undefined if it describes no array. @throws OptError CORRUPT, UNSUPPORTED */
export function numpyArray(value: unknown, source: ByteSource): ForeignTensor | undefined {
  const described = value instanceof PickleCall ? describedArray(value) : undefined;
  if (described === undefined) return undefined;
  const [sizes, type, isColumnMajor, data] = described;
  if (!(sizes instanceof PickleTuple)) throw unread(source.path, "an array without shape");
  const shape = sizes.items.map(Number);
  const dtype = dtypeOf(type, source.path);
  const count = elementCount(shape);
  if (count === undefined || !shape.every(isCount)) {
    throw corrupt(source.path, `an array has the shape [${shape}]`);
  }
  const width = bytesPerElement(dtype);
  const storage = rawBytes(data, source, count * width);
  if (storage === undefined) throw unread(source.path, "an array of Python objects");
  if (isColumnMajor !== true) return { dtype, shape, bytes: storage };
  const columns = strides(shape.toReversed(), 1).reverse();
  return {
    dtype,
    shape,
    bytes: stridedSource(storage, { bytesPerElement: width, offset: 0, shape, strides: columns }),
  };
}

/** Shape, dtype, whether the first dimension's elements lie together, and bytes: protocol 5 gives a buffer, earlier ones a state. */
function describedArray({ callable, args, state }: PickleCall): readonly unknown[] | undefined {
  if (callable.endsWith("multiarray._reconstruct")) return state instanceof PickleTuple ? state.items.slice(1) : [];
  if (!callable.endsWith("numeric._frombuffer")) return undefined;
  const [data, type, sizes, order] = args;
  return [sizes, type, order === "F", data];
}

/** What an array or scalar of anything but numbers holds; undefined for numbers, and for what is no array. */
export function notNumbers(value: unknown): string | undefined {
  if (!(value instanceof PickleCall)) return undefined;
  const isScalar = value.callable.endsWith("multiarray.scalar");
  const type = isScalar ? value.args[0] : describedArray(value)?.[1];
  const code = type instanceof PickleCall ? String(type.args[0]) : "";
  return /^[OSUVMm]/.test(code) ? `a numpy ${isScalar ? "scalar" : "array"} of ${code.slice(0, 50)}` : undefined;
}

const SCALARS: readonly StoredDType[] = ["F64", "F32", "BOOL", "I8", "U8", "I16", "U16", "I32", "U32", "I64", "U64"];

/** The number of a NumPy scalar, or undefined for another object. */
export function numpyScalar(value: unknown): number | boolean | string | undefined {
  if (!(value instanceof PickleCall) || !value.callable.endsWith("multiarray.scalar")) return undefined;
  const [type, data] = value.args;
  const bytes = shortBytes(data);
  const dtype = dtypeOf(type, "numpy scalar");
  if (bytes === undefined || bytes.byteLength !== bytesPerElement(dtype)) return undefined;
  if (!SCALARS.includes(dtype)) return undefined;
  const number = numberReader(dtype, bytes, "numpy scalar")(0);
  if (dtype === "BOOL") return number !== 0;
  if (Number.isSafeInteger(number) || !/64$/.test(dtype) || dtype === "F64") return number;
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  return String(dtype === "I64" ? view.getBigInt64(0, true) : view.getBigUint64(0, true));
}

function dtypeOf(type: unknown, path: string): StoredDType {
  const call = type instanceof PickleCall ? type : undefined;
  const code = String(call?.args[0]);
  const order = call?.state instanceof PickleTuple ? call.state.items[1] : "|";
  const dtype = Object.hasOwn(NUMPY_DTYPES, code) ? NUMPY_DTYPES[code] : undefined;
  if (dtype === undefined || (order === ">" && bytesPerElement(dtype) > 1)) {
    throw unread(path, `an array of ${order === ">" ? "big-endian " : ""}${code.slice(0, 50)}`);
  }
  return dtype;
}

function shortBytes(value: unknown): Uint8Array | undefined {
  if (value instanceof Uint8Array) return value;
  const text = value instanceof PickleCall && value.callable === "_codecs.encode" ? value.args[0] : value;
  return typeof text === "string" ? Uint8Array.from(text, (char) => char.charCodeAt(0)) : undefined;
}

/** An array's bytes: in memory when short, else where they lie; protocol 2 wrote them as text in Latin-1. */
function rawBytes(value: unknown, source: ByteSource, byteLength: number): ByteSource | undefined {
  const short = shortBytes(value);
  if (short !== undefined) return memorySource(source.path, short);
  if (value instanceof PickleRange && value.kind === "bytes") return partOf(source, value.offset, value.length);
  const text = value instanceof PickleCall && value.callable === "_codecs.encode" ? value.args[0] : undefined;
  return text instanceof PickleRange ? latin1Source(source, text, byteLength) : undefined;
}

function latin1Source(source: ByteSource, range: PickleRange, byteLength: number): ByteSource {
  // One Latin-1 character is one or two bytes of UTF-8, so a claim beyond the text's own length is false.
  if (byteLength > range.length) checkRange(partOf(source, range.offset, range.length), 0, byteLength);
  return {
    path: source.path,
    byteLength,
    async read(target, position) {
      checkRange(this, position, target.byteLength);
      const text = new TextDecoder().decode(await readBytes(source, range.offset, range.length));
      if (text.length !== byteLength) checkRange(memorySource(source.path, new Uint8Array(0)), 0, byteLength);
      for (let i = 0; i < target.byteLength; i++) target[i] = text.charCodeAt(position + i);
    },
  };
}
