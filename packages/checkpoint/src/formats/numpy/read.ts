/** NumPy's `.npy`, one array, and `.npz`, a zip of them. Source: numpy.lib.format, versions 1 to 3. */
import { bytesPerElement, type StoredDType } from "../../format/dtype";
import type { SourceTensor } from "../../format/source";
import { elementCount } from "../../layout/box";
import { isCount } from "../../layout/counts";
import { strides } from "../../plan/runs";
import { basename } from "../../stores/path";
import { corrupt, quoted } from "../bytes/errors";
import { type ForeignTensor, wholeTensor } from "../bytes/foreign-tensor";
import { latin1 } from "../bytes/latin1";
import { formatReader } from "../bytes/reader";
import { type ByteSource, checkRange, partOf, readBytes } from "../bytes/source";
import { stridedSource } from "../bytes/strided";
import { NUMPY_DTYPES } from "../python/numpy-array";
import { openZip } from "../zip/read";

const ENDING = ".npy";
export const NPY_MAGIC = "\x93NUMPY";
/** NumPy itself does not trust longer ones. */
const LONGEST_HEADER = 64 * 1024;

export const numpyReader = formatReader("NumPy", async ({ path, file }) => {
  const source = await file();
  const head = latin1(await readBytes(source, 0, Math.min(6, source.byteLength)));
  const arrays = head === NPY_MAGIC ? [["tensor.npy", source] as const] : await openZip(source);
  const tensors: SourceTensor[] = [];
  const unreadable = new Map<string, string>();
  for (const [member, bytes] of arrays) {
    const name = member.endsWith(ENDING) ? member.slice(0, -ENDING.length) : member;
    const array = name === member ? "it is no array" : await readArray(bytes);
    if (typeof array === "string") unreadable.set(name, array);
    else tensors.push(wholeTensor(name, array, basename(path)));
  }
  return { tensors, unreadable };
});

/** The array, or why it cannot be read. @throws OptError CORRUPT */
async function readArray(source: ByteSource): Promise<ForeignTensor | string> {
  const { text, begin } = await readHeader(source);
  // A type that is no text describes fields: names of theirs could look like all else.
  const type = /['"]descr['"]\s*:\s*['"]([<>=|]?)(\w+)/.exec(text);
  if (type === null) return "it is an array of records";
  const [, order = "", code = ""] = type;
  const dtype = Object.hasOwn(NUMPY_DTYPES, code) ? NUMPY_DTYPES[code] : undefined;
  if (dtype === undefined) return `it is an array of ${code === "O" ? "Python objects" : quoted(code)}`;
  const lengths = /['"]shape['"]\s*:\s*\(([^)]*)\)/.exec(text)?.[1];
  const isColumnMajor = /['"]fortran_order['"]\s*:\s*(True|False)/.exec(text)?.[1];
  // Python 2 wrote `3L`.
  const shape = lengths?.match(/[^\s,]+/g)?.map((length) => Number(length.replace(/L$/, ""))) ?? [];
  const count = elementCount(shape);
  if (lengths === undefined || isColumnMajor === undefined || !shape.every(isCount) || count === undefined)
    throw corrupt(source.path, `the header of the array is ${quoted(text, 200)}`);
  const width = bytesPerElement(dtype);
  const stored = partOf(source, begin, source.byteLength - begin);
  const bytes = order === ">" ? swapped(stored, dtype) : stored;
  if (isColumnMajor === "False" || shape.length < 2) return { dtype, shape, bytes };
  const columns = strides(shape.toReversed(), 1).reverse();
  const view = { bytesPerElement: width, offset: 0, shape, strides: columns };
  return { dtype, shape, bytes: stridedSource(bytes, view) };
}

/** Six bytes of magic, two of version, the header's length in two bytes, or four from version 2 on, and a dict as Python prints it. */
async function readHeader(source: ByteSource): Promise<{ text: string; begin: number }> {
  const head = await readBytes(source, 0, Math.min(12, source.byteLength));
  const view = new DataView(head.buffer);
  const major = head[6] ?? 0;
  const place = major === 1 ? 10 : 12;
  if (!latin1(head).startsWith(NPY_MAGIC) || major < 1 || major > 3 || head.length < place)
    throw corrupt(source.path, "it does not begin as an array of NumPy does");
  const length = major === 1 ? view.getUint16(8, true) : view.getUint32(8, true);
  if (length > LONGEST_HEADER) throw corrupt(source.path, `the header of the array has ${length} bytes`);
  const text = new TextDecoder().decode(await readBytes(source, place, length));
  return { text, begin: place + length };
}

/** Big-endian numbers as little-endian ones; those of complex numbers each by itself. */
function swapped(source: ByteSource, dtype: StoredDType): ByteSource {
  const width = dtype === "C64" ? 4 : bytesPerElement(dtype);
  return {
    path: source.path,
    byteLength: source.byteLength,
    isChecked: source.isChecked ?? false,
    async read(target, position) {
      checkRange(this, position, target.byteLength);
      const first = position - (position % width);
      const end = Math.min(source.byteLength, Math.ceil((position + target.byteLength) / width) * width);
      const bytes = await readBytes(source, first, end - first);
      for (let at = 0; at < bytes.byteLength; at += width) bytes.subarray(at, at + width).reverse();
      target.set(bytes.subarray(position - first, position - first + target.byteLength));
    },
  };
}
