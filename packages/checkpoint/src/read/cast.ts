/** Conversion between dtypes: with loss only ever when it was asked for. */
import { OptError } from "@opt/core";
import { bytesPerElement, type StoredDType } from "../format/dtype";
import { numberReader, numberWriter } from "../format/numbers";
import { LazyTensor, type SourceBox, type SourceTensor } from "../format/source";
import { otherDType, whereOf } from "./held";

/** Converted at once, so that a conversion needs little memory beside its result. */
const ELEMENTS = 64 << 10;

/** The same tensor in another dtype, converted as it is read. Throws UNSUPPORTED for dtypes that are no plain numbers. */
export function castTensor(tensor: SourceTensor, dtype: StoredDType): SourceTensor {
  if (dtype === tensor.dtype) return tensor;
  const where = whereOf(tensor.name);
  numberReader(tensor.dtype, new Uint8Array(0), where);
  numberWriter(dtype, new Uint8Array(0), where);
  return converted(tensor, dtype, (...bytes) => convert(tensor.dtype, bytes[0], dtype, bytes[1], where));
}

/**
 * Integers of 64 bits (PyTorch's counters) as i32, the only integers that tensors have: the same numbers, or none. What is read throws
 * BAD_DTYPE where one does not fit.
 */
export function exactI32(tensor: SourceTensor): SourceTensor {
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

type Convert = (source: Uint8Array, target: Uint8Array) => void;

function converted(tensor: SourceTensor, dtype: StoredDType, convert: Convert): SourceTensor {
  const boxes = () => tensor.boxes.map((box) => castBox(box, tensor.dtype, dtype, convert));
  return new LazyTensor({ ...tensor, dtype }, boxes);
}

function castBox(box: SourceBox, from: StoredDType, to: StoredDType, convert: Convert): SourceBox {
  const [fromWidth, toWidth] = [bytesPerElement(from), bytesPerElement(to)];
  const read = async (target: Uint8Array, start: number) => {
    const count = target.length / toWidth;
    const buffer = new Uint8Array(Math.min(count, ELEMENTS) * fromWidth);
    for (let done = 0; done < count; done += ELEMENTS) {
      const now = Math.min(ELEMENTS, count - done);
      const bytes = buffer.subarray(0, now * fromWidth);
      await box.read(bytes, (start / toWidth + done) * fromWidth);
      convert(bytes, target.subarray(done * toWidth, (done + now) * toWidth));
    }
  };
  const { offset, size, file } = box;
  return { offset, size, file, byteLength: (box.byteLength / fromWidth) * toWidth, read };
}

function convert(from: StoredDType, source: Uint8Array, to: StoredDType, target: Uint8Array, where: string): void {
  const read = numberReader(from, source, where);
  const write = numberWriter(to, target, where);
  const count = source.length / bytesPerElement(from);
  for (let i = 0; i < count; i++) write(i, read(i));
}
