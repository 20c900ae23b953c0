/** Reads what `SummaryWriter` wrote: the events of TensorBoard's files. */
import type { memoryFileSystem } from "@opt/checkpoint";

/** A number or a histogram of a step: a histogram's value is its bytes in hexadecimal. */
interface StoredSummary {
  readonly tag: string;
  readonly step: number;
  readonly value: number | string;
}

type Field = readonly [number: number, value: number | Buffer];

/** The scalars and histograms of all files of a folder, in the order in which they were written. */
export async function summariesIn(
  folder: string,
  fileSystem: ReturnType<typeof memoryFileSystem>,
): Promise<StoredSummary[]> {
  const names = (await fileSystem.list(folder)).map(({ name }) => name);
  const files = names.sort((a, b) => numberOf(a) - numberOf(b));
  const all = await Promise.all(
    files.map(async (name) => Buffer.from(await (await fileSystem.blob(`${folder}/${name}`)).arrayBuffer())),
  );
  return all.flatMap((bytes) => recordsOf(bytes).flatMap(summariesOf));
}

/** Files of one process are numbered. */
const numberOf = (name: string) => Number(name.split(".").at(-1));

/** TFRecords: a length of 8 bytes, its checksum, the event, its checksum. */
function recordsOf(bytes: Buffer): Buffer[] {
  const records: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = Number(bytes.readBigUInt64LE(at));
    records.push(bytes.subarray(at + 12, at + 12 + length));
    at += length + 16;
  }
  return records;
}

function summariesOf(event: Buffer): StoredSummary[] {
  const fields = fieldsOf(event);
  const step = (fields.find(([number]) => number === 2)?.[1] ?? 0) as number;
  const values = fields.filter(([number]) => number === 5).flatMap(([, summary]) => fieldsOf(summary as Buffer));
  return values.flatMap(([, value]): StoredSummary[] => {
    const parts = new Map(fieldsOf(value as Buffer));
    const [tag, scalar, histogram] = [1, 2, 5].map((number) => parts.get(number) as Buffer | undefined);
    if (scalar !== undefined) return [{ tag: String(tag), step, value: scalar.readFloatLE() }];
    return histogram === undefined ? [] : [{ tag: String(tag), step, value: histogram.toString("hex") }];
  });
}

/** The fields of a protobuf message: numbers as such, all others as their bytes. */
function fieldsOf(bytes: Buffer): Field[] {
  const fields: Field[] = [];
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let shift = 1; ; shift *= 128) {
      const byte = bytes[at++]!;
      value += (byte & 127) * shift;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const key = varint();
    const [number, kind] = [key >> 3, key & 7];
    if (kind === 0) fields.push([number, varint()]);
    else {
      const length = kind === 1 ? 8 : kind === 5 ? 4 : varint();
      fields.push([number, bytes.subarray(at, at + length)]);
      at += length;
    }
  }
  return fields;
}
