import { bytesPerElement, type StoredDType } from "../../format/dtype";
import { redescribed, type SourceBox, type SourceTensor, StoredBox } from "../../format/source";
import { elementCount } from "../../layout/box";
import { basename } from "../../stores/path";
import { corrupt, duplicate } from "./errors";
import { type ByteSource, memorySource } from "./source";

/** A tensor, or a part of one, as an importer finds it: its bytes row-major and little-endian. */
export interface ForeignTensor {
  readonly dtype: StoredDType;
  readonly shape: readonly number[];
  readonly bytes: ByteSource;
}

/** @throws OptError CORRUPT unless the bytes are exactly the shape's */
export function checkFilled({ dtype, shape, bytes }: ForeignTensor, name: string): void {
  const count = elementCount(shape);
  if (count !== undefined && count * bytesPerElement(dtype) === bytes.byteLength) return;
  const problem = `tensor ${JSON.stringify(name)}, ${dtype} [${shape}], does not fill its ${bytes.byteLength} bytes exactly`;
  throw corrupt(bytes.path, problem);
}

/** The box of a part whose first element is at `offset` of the whole. */
export function boxOf({ shape, bytes }: ForeignTensor, file: string, offset: readonly number[]): SourceBox {
  const { byteLength, stored, isChecked = false } = bytes;
  if (stored && !isChecked) return new StoredBox(offset, shape, file, stored.begin, byteLength, undefined, stored.file);
  return {
    offset,
    size: shape,
    byteLength,
    file,
    isChecked,
    ...(stored ? { byteOffset: stored.begin } : {}),
    read: (target, start) => bytes.read(target, start),
  };
}

/** A tensor in one box. @throws OptError CORRUPT unless the bytes are exactly the shape's */
export function wholeTensor(name: string, tensor: ForeignTensor, file: string): SourceTensor {
  checkFilled(tensor, name);
  const { dtype, shape } = tensor;
  const offset = shape.map(() => 0);
  return { name, dtype, shape, boxes: [boxOf(tensor, file, offset)] };
}

/** The tensors of one file, each in one box. */
export function wholeTensors(tensors: Iterable<readonly [string, ForeignTensor]>, path: string): SourceTensor[] {
  return Array.from(tensors, ([name, tensor]) => wholeTensor(name, tensor, basename(path)));
}

/** Tensors by name. @throws OptError DUPLICATE if a name occurs twice */
export function byName(tensors: Iterable<SourceTensor>, path: string): Map<string, SourceTensor> {
  const map = new Map<string, SourceTensor>();
  for (const tensor of tensors) {
    if (map.has(tensor.name)) throw duplicate(path, `two tensors are called ${JSON.stringify(tensor.name)}`);
    map.set(tensor.name, tensor);
  }
  return map;
}

/** The same tensors under new names. @throws OptError DUPLICATE if two fall together */
export function renamed(
  tensors: Iterable<SourceTensor>,
  nameOf: (name: string) => string,
  { path, advice }: { readonly path: string; readonly advice: string },
): Map<string, SourceTensor> {
  const map = new Map<string, SourceTensor>();
  for (const tensor of tensors) {
    const name = nameOf(tensor.name);
    if (map.has(name)) throw duplicate(path, `two tensors would be called ${JSON.stringify(name)}`, advice);
    const follows = tensor.follows === undefined ? {} : { follows: nameOf(tensor.follows) };
    map.set(name, redescribed(tensor, { name, ...follows }));
  }
  return map;
}

/** A number as a tensor of one float32 without dimensions, as PyTorch counts steps, or of one float64 where that would round it. */
export function scalarTensor(name: string, value: number, path: string): SourceTensor {
  const isFloat32 = Object.is(Math.fround(value), value);
  const data = isFloat32 ? Float32Array.of(value) : Float64Array.of(value);
  const bytes = memorySource(path, new Uint8Array(data.buffer));
  return wholeTensor(name, { dtype: isFloat32 ? "F32" : "F64", shape: [], bytes }, path);
}
