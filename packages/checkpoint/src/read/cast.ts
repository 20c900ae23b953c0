/** Conversion between dtypes, only ever when it was asked for. */
import { bytesPerElement, type StoredDType } from "../format/dtype";
import { numberReader, numberWriter } from "../format/numbers";
import { LazyTensor, type SourceBox, type SourceTensor } from "../format/source";

/** Converted at once, so that a conversion needs little memory beside its result. */
const ELEMENTS = 64 << 10;

/** The same tensor in another dtype, converted as it is read. Throws UNSUPPORTED for dtypes that are no plain numbers. */
export function castTensor(tensor: SourceTensor, dtype: StoredDType): SourceTensor {
  if (dtype === tensor.dtype) return tensor;
  const where = `tensor ${JSON.stringify(tensor.name)}`;
  numberReader(tensor.dtype, new Uint8Array(0), where);
  numberWriter(dtype, new Uint8Array(0), where);
  const boxes = () => tensor.boxes.map((box) => castBox(box, tensor.dtype, dtype, where));
  return new LazyTensor({ ...tensor, dtype }, boxes);
}

function castBox(box: SourceBox, from: StoredDType, to: StoredDType, where: string): SourceBox {
  const [fromWidth, toWidth] = [bytesPerElement(from), bytesPerElement(to)];
  const read = async (target: Uint8Array, start: number) => {
    const count = target.length / toWidth;
    const buffer = new Uint8Array(Math.min(count, ELEMENTS) * fromWidth);
    for (let done = 0; done < count; done += ELEMENTS) {
      const now = Math.min(ELEMENTS, count - done);
      const bytes = buffer.subarray(0, now * fromWidth);
      await box.read(bytes, (start / toWidth + done) * fromWidth);
      convert(from, bytes, to, target.subarray(done * toWidth, (done + now) * toWidth), where);
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
