/** Writes `.npz` files byte for byte as `numpy.savez` does: a zip of stored arrays, whose headers come first and hold checksums. */
import { crc32 } from "../../format/crc32";
import { bytesOf, type StoredDType } from "../../format/dtype";
import type { SourceTensor, TensorSource } from "../../format/source";
import { unsupported } from "../../formats/bytes/errors";
import { NPY_MAGIC } from "../../formats/numpy/read";
import { NUMPY_DTYPES } from "../../formats/python/numpy-array";
import { CENTRAL, LOCAL, SEE_WIDE, UTF8 } from "../../formats/zip/records";
import { wholeOf } from "../../layout/box";
import { streamTensors } from "../../read/stream";
import { known, type Part, SequenceWriter } from "../files/write-sequence";
import { type ExportOptions, writeWhole } from "../files/write-whole";
import { endOfDirectory, join, wideField } from "../zip/write";

const CODES = new Map(Object.entries(NUMPY_DTYPES).map(([code, dtype]) => [dtype, code]));

/**
 * Writes the tensors, whole, in C order. They are read twice: first for their checksums, which stand before them.
 *
 * @throws OptError UNSUPPORTED for dtypes that NumPy lacks, MISSING for gaps, IO
 */
export async function writeNpz(source: TensorSource, path: string, options: ExportOptions = {}): Promise<void> {
  const tensors = [...source.tensors.values()];
  const members = tensors.map((tensor): Member => {
    const head = npyHeader(tensor.shape, codeOf(tensor, path));
    return { name: `${tensor.name}.npy`, head, content: bytesOf(tensor), crc32: crc32(head) };
  });
  const { progress: _, ...first } = options;
  const stream = (write: (bytes: Uint8Array, i: number) => Promise<void> | undefined, settings: ExportOptions) =>
    streamTensors(
      tensors.map((tensor, i) => ({
        tensor,
        targets: [{ box: wholeOf(tensor.shape), write: (bytes: Uint8Array) => write(bytes, i) }],
      })),
      settings,
    );
  await stream((bytes, i) => {
    members[i]!.crc32 = crc32(bytes, members[i]!.crc32);
    return undefined;
  }, first);
  await writeWhole(path, options, async (file) => {
    const writer = new SequenceWriter(file);
    writer.announce(npzParts(members));
    await stream((bytes) => writer.write(bytes), options);
    return writer.finish();
  });
}

function codeOf({ name, dtype }: SourceTensor, path: string): string {
  const code = CODES.get(dtype);
  if (code !== undefined && dtype !== "BF16") return ONE_BYTE.includes(dtype) ? `|${code}` : `<${code}`;
  throw unsupported(path, `NumPy has no ${dtype}, which ${JSON.stringify(name)} is`, "Convert it: --dtype f32.");
}

const ONE_BYTE: readonly StoredDType[] = ["BOOL", "I8", "U8"];
/** The data begin at a multiple of it. */
const ALIGNMENT = 64;
/** The first dimension may grow to so many digits in place. */
const GROWTH = 21;
/** Magic, version 1.0, and the length of what follows. */
const PREFIX = 10;

/** The head of an array in C order. Source: numpy.lib.format, version 1.0, which holds 65,535 bytes: shapes are far shorter. */
export function npyHeader(shape: readonly number[], type: string): Uint8Array {
  const lengths = shape.length === 1 ? `${shape},` : shape.join(", ");
  const dict = `{'descr': '${type}', 'fortran_order': False, 'shape': (${lengths}), }`;
  const text = dict + " ".repeat(shape.length === 0 ? 0 : GROWTH - String(shape[0]).length);
  const padding = ALIGNMENT - ((PREFIX + text.length + 1) % ALIGNMENT);
  const line = `${text}${" ".repeat(padding)}\n`;
  const head = [...NPY_MAGIC].map((letter) => letter.charCodeAt(0));
  return join([Uint8Array.of(...head, 1, 0, line.length & 0xff, line.length >> 8), new TextEncoder().encode(line)]);
}

interface Member {
  readonly name: string;
  readonly head: Uint8Array;
  /** Bytes behind the head. */
  readonly content: number;
  /** Of both. */
  crc32: number;
}

/** What Python's zipfile says of each: of Unix, a file of its owner's, of 1980-01-01. */
const FIXED = { needs: 45, time: 0x21 << 16 };
const MADE_BY = (3 << 8) | 45;
const OWNED = 0o600 << 16;
/** From here on Python's zipfile takes the long form. */
const WIDEST = 2 ** 31 - 1;

function npzParts(members: readonly Member[]): Part[] {
  const parts: Part[] = [];
  const directory: Uint8Array[] = [];
  let begin = 0;
  for (const { name: text, head, content, crc32 } of members) {
    const name = new TextEncoder().encode(text);
    const size = head.byteLength + content;
    const flags = name.length === text.length ? 0 : UTF8;
    const common = { ...FIXED, flags, crc32, name: name.length };
    const sizes = wideField(size, size);
    const local = LOCAL.write({ ...common, packed: SEE_WIDE, size: SEE_WIDE, extra: sizes.length });
    parts.push(known(join([local, name, sizes, head]), content));
    const wide = [...(size > WIDEST ? [size, size] : []), ...(begin > WIDEST ? [begin] : [])];
    const extra = wideField(...wide);
    const short = { packed: size > WIDEST ? SEE_WIDE : size, size: size > WIDEST ? SEE_WIDE : size };
    const place = { begin: begin > WIDEST ? SEE_WIDE : begin, extra: extra.length };
    directory.push(CENTRAL.write({ ...common, ...short, ...place, madeBy: MADE_BY, external: OWNED }), name, extra);
    begin += local.length + name.length + sizes.length + size;
  }
  const listed = join(directory);
  parts.push(known(listed), known(endOfDirectory(members.length, begin, listed.length, WIDEST)));
  return parts;
}
