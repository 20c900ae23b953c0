/** NumPy's `.npy`, one array, and `.npz`, a zip of them. Source: numpy.lib.format, versions 1 to 3. */
import { bytesPerElement, type StoredDType } from "../../format/dtype";
import type { Skipped, SourceTensor } from "../../format/source";
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
import { openZip, type ZipMember } from "../zip/read";

const ENDING = ".npy";
export const NPY_MAGIC = "\x93NUMPY";
/** NumPy itself does not trust longer ones. */
const LONGEST_HEADER = 64 * 1024;
/** Read at once where an array begins: most headers have 128 bytes. */
const HEAD = 1024;

type Head = Pick<ZipMember, "head">;

/** What no tensor can hold, by the letter of its type; dates are counts since a day, of a unit. */
const NO_NUMBERS: Readonly<Record<string, string>> = {
  ...{ O: "Python objects", U: "texts", S: "texts", M: "dates", m: "times" },
};

export const numpyReader = formatReader("NumPy", async ({ path, file }) => {
  const source = await file();
  const head = latin1(await readBytes(source, 0, Math.min(6, source.byteLength)));
  const own: ByteSource & Head = {
    ...source,
    head: (length) => readBytes(source, 0, Math.min(length, source.byteLength)),
  };
  const arrays = head === NPY_MAGIC ? [["tensor.npy", own] as const] : await openZip(source);
  const tensors: SourceTensor[] = [];
  const unreadable = new Map<string, string>();
  const skipped: Skipped[] = [];
  for (const [member, bytes] of arrays) {
    const name = member.endsWith(ENDING) ? member.slice(0, -ENDING.length) : member;
    const array = name === member ? { what: "no array" } : await readArray(bytes);
    if (typeof array === "string") unreadable.set(name, array);
    else if ("what" in array) skipped.push({ name, ...array });
    else tensors.push(wholeTensor(name, array, basename(path)));
  }
  return { tensors, unreadable, skipped };
});

/** The array, or why it cannot be read, or what else it is. @throws OptError CORRUPT */
async function readArray(source: ByteSource & Head): Promise<ForeignTensor | string | Pick<Skipped, "what">> {
  const { text, begin } = await readHeader(source);
  // A type that is no text describes fields: names of theirs could look like all else.
  const type = /['"]descr['"]\s*:\s*['"]([<>=|]?)(\w+)/.exec(text);
  if (type === null) return "it is an array of records";
  const [, order = "", code = ""] = type;
  const dtype = Object.hasOwn(NUMPY_DTYPES, code) ? NUMPY_DTYPES[code] : undefined;
  const kind = NO_NUMBERS[code.charAt(0)];
  if (dtype === undefined)
    return kind === undefined ? `it is an array of ${quoted(code)}` : { what: `an array of ${kind}` };
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
async function readHeader(source: ByteSource & Head): Promise<{ text: string; begin: number }> {
  const head = await source.head(HEAD);
  const view = new DataView(head.buffer, head.byteOffset);
  const major = head[6] ?? 0;
  const place = major === 1 ? 10 : 12;
  if (!latin1(head).startsWith(NPY_MAGIC) || major < 1 || major > 3 || head.length < place)
    throw corrupt(source.path, "it does not begin as an array of NumPy does");
  const length = major === 1 ? view.getUint16(8, true) : view.getUint32(8, true);
  if (length > LONGEST_HEADER) throw corrupt(source.path, `the header of the array has ${length} bytes`);
  const begin = place + length;
  const whole = begin <= head.byteLength ? head : await source.head(begin);
  if (whole.byteLength < begin) throw corrupt(source.path, "the header of the array is longer than its file");
  return { text: new TextDecoder().decode(whole.subarray(place, begin)), begin };
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
