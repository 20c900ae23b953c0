/** Conversion between dtypes, with loss only ever when it was asked for, and what tensors can hold. */
import { type DType, OptError, type Tensor, tensorFromBytes } from "@opt/core";
import { bytesPerElement, isFloating, type StoredDType, tensorDType } from "../format/dtype";
import { numberReader, numberWriter } from "../format/numbers";
import { type Conversion, redescribed, type SelectedTensor, storedWidth } from "../format/source";

/**
 * The same tensor in another dtype, converted as it is read, and once only.
 *
 * @throws OptError UNSUPPORTED for dtypes that are no plain numbers
 */
export function castTensor(tensor: SelectedTensor, dtype: StoredDType): SelectedTensor {
  if (dtype === tensor.dtype || tensor.conversion) return tensor;
  const where = whereOf(tensor.name);
  numberReader(tensor.dtype, new Uint8Array(0), where);
  numberWriter(dtype, new Uint8Array(0), where);
  return converted(tensor, dtype, (...bytes) => convert(tensor.dtype, bytes[0], dtype, bytes[1], where));
}

/** 64-bit integers (PyTorch's counters) as i32, the only integers that tensors have. Reading one that does not fit throws BAD_DTYPE. */
export function exactI32(tensor: SelectedTensor): SelectedTensor {
  return converted(tensor, "I32", (source, target) => {
    const [from, to] = [source, target].map((bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    for (let i = 0; i < target.length / 4; i++) {
      const value = from!.getBigInt64(8 * i, true);
      if (BigInt.asIntN(32, value) !== value) {
        const problem = `i32 cannot hold ${value}, which it has as I64.`;
        throw new OptError("BAD_DTYPE", whereOf(tensor.name), problem, otherDType(tensor.name, "I64"));
      }
      to!.setInt32(4 * i, Number(value), true);
    }
  });
}

/** The same boxes, converted as they are read. */
function converted(tensor: SelectedTensor, dtype: StoredDType, convert: Conversion["convert"]): SelectedTensor {
  const widths = { from: storedWidth(tensor), to: bytesPerElement(dtype) };
  return redescribed(tensor, { dtype, conversion: { widths, convert } });
}

function convert(from: StoredDType, source: Uint8Array, to: StoredDType, target: Uint8Array, where: string): void {
  const read = numberReader(from, source, where);
  const write = numberWriter(to, target, where);
  const count = source.length / bytesPerElement(from);
  for (let i = 0; i < count; i++) write(i, read(i));
}

/** A Tensor of loaded bytes, by default on the default device. @throws OptError UNSUPPORTED for what tensors cannot hold */
export function toTensor(
  name: string,
  dtype: StoredDType,
  shape: readonly number[],
  bytes: Uint8Array,
  device?: string,
): Tensor {
  return tensorFromBytes(bytes, [...shape], { dtype: heldDType(name, dtype), device });
}

/** The dtype of a Tensor that is loaded. @throws OptError UNSUPPORTED for what tensors cannot hold */
export function heldDType(name: string, dtype: StoredDType): DType {
  const core = tensorDType(dtype);
  if (core) return core;
  throw new OptError("UNSUPPORTED", whereOf(name), `tensors cannot hold ${dtype}.`, otherDType(name, dtype));
}

function whereOf(name: string): string {
  return `tensor ${JSON.stringify(name)}`;
}

/** How to load what tensors cannot hold. By name: one dtype for all is not meant for counters and masks. */
function otherDType(name: string, dtype: StoredDType): string {
  const other = isFloating(dtype) ? "f32" : "f64";
  return `Ask for another with { dtype: { ${JSON.stringify(name)}: "${other}" } }, or for plain data with { as: "plain" }.`;
}
