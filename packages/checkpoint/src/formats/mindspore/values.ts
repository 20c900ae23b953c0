/** The values of a MindSpore `.ckpt`, read one after another with their contents left where they lie; and their bytes again. */
import { check } from "@opt/core";
import { mostTensors } from "../../format/source";
import { ByteCursor } from "../bytes/cursor";
import { corrupt, unsupported } from "../bytes/errors";
import { latin1 } from "../bytes/latin1";
import { type ByteSource, checkCrc, crcOf, partOf, readBytes } from "../bytes/source";
import { CRC_MARK, CRC_TRAILER, ENCRYPTED_MAGIC } from "./format";
import { eachField, lengthHead, readDims, readText, varint } from "./protobuf";

/** One `Value`, as it is stored: a tensor, or a piece of one that is too large for a single value. */
export interface MindsporeValue {
  readonly tag: string;
  readonly dims: readonly number[];
  readonly type: string;
  readonly content: ByteSource;
}

const LONGEST_TEXT = 4096;

/** All values of a file, in order, and its checksum's end if it has one. @throws OptError CORRUPT, UNSUPPORTED, REFUSED */
export async function readMindsporeValues(
  source: ByteSource,
): Promise<{ values: MindsporeValue[]; crc: number | undefined; end: number }> {
  await rejectEncrypted(source);
  const crc = await storedCrc(source);
  const end = crc === undefined ? source.byteLength : source.byteLength - CRC_TRAILER;
  const cursor = new ByteCursor(source);
  const values: MindsporeValue[] = [];
  const most = mostTensors(source.byteLength);
  await eachField(cursor, end, async (field) => {
    if (field.number !== 1 || field.kind !== "bytes") return;
    check(
      values.length < most,
      "REFUSED",
      source.path,
      () => `the file names more than ${most} parameters.`,
      "Its size makes that unlikely: use another copy.",
    );
    values.push(await readValue(cursor, field.end));
  });
  if (values.length === 0 && source.byteLength > 0) {
    const advice = "If it is a strategy file, open the folder that holds it together with rank_0, rank_1 and so on.";
    throw corrupt(source.path, "the file holds no parameter", advice);
  }
  return { values, crc, end };
}

/** @throws OptError CORRUPT unless everything before the trailer has the checksum that it holds */
export async function checkMindsporeCrc(source: ByteSource, crc: number, end: number): Promise<void> {
  checkCrc(source.path, crc, await crcOf(source, 0, end));
}

/** The bytes before a value's content; every value is a `Checkpoint` message of its own, as MindSpore writes them. */
export function mindsporeValueHead(tag: string, dims: readonly number[], type: string, byteLength: number): Uint8Array {
  const text = new TextEncoder();
  const name = text.encode(tag);
  const kind = text.encode(type);
  const tensor = [
    ...dims.flatMap((dim) => [0x08, ...varint(dim)]),
    ...lengthHead(2, kind.byteLength),
    ...kind,
    ...lengthHead(3, byteLength),
  ];
  const value = [...lengthHead(1, name.byteLength), ...name, ...lengthHead(2, tensor.length + byteLength), ...tensor];
  return Uint8Array.from([...lengthHead(1, value.length + byteLength), ...value]);
}

/** The 17 bytes that end a file with a checksum. */
export function mindsporeCrcTrailer(crc: number): Uint8Array {
  const trailer = new Uint8Array(CRC_TRAILER);
  trailer.set(new TextEncoder().encode(CRC_MARK));
  new DataView(trailer.buffer).setUint32(CRC_TRAILER - 4, crc, false);
  return trailer;
}

async function readValue(cursor: ByteCursor, end: number): Promise<MindsporeValue> {
  let tag: string | undefined;
  let tensor: Omit<MindsporeValue, "tag"> | undefined;
  await eachField(cursor, end, async (field) => {
    if (field.kind !== "bytes") return;
    if (field.number === 1) tag = await readText(cursor, field.end, LONGEST_TEXT);
    else if (field.number === 2) tensor = await readTensor(cursor, field.end);
    else if (field.number === 3) throw unread(cursor.source.path, "a map parameter (a growing hash table)");
  });
  if (tag === undefined || tensor === undefined) throw cursor.corrupt("a value has no tag or no tensor");
  return { tag, ...(tensor as Omit<MindsporeValue, "tag">) };
}

async function readTensor(cursor: ByteCursor, end: number): Promise<Omit<MindsporeValue, "tag">> {
  const dims: number[] = [];
  let type: string | undefined;
  let content: ByteSource | undefined;
  await eachField(cursor, end, async (field) => {
    if (field.number === 1) await readDims(cursor, field, dims);
    else if (field.kind === "varint") return;
    else if (field.number === 2) type = await readText(cursor, field.end, LONGEST_TEXT);
    else if (field.number === 3) content = partOf(cursor.source, cursor.position, field.end - cursor.position);
  });
  if (type === undefined || content === undefined) throw cursor.corrupt("a tensor has no type or no content");
  if (dims.some((dim) => dim < 0)) throw cursor.corrupt("a tensor has impossible dims");
  return { dims, type, content };
}

async function rejectEncrypted(source: ByteSource): Promise<void> {
  if (source.byteLength < 4) return;
  const head = await readBytes(source, 0, 4);
  if (ENCRYPTED_MAGIC.includes(new DataView(head.buffer).getUint32(0, true))) {
    throw unread(source.path, "an encrypted checkpoint");
  }
}

async function storedCrc(source: ByteSource): Promise<number | undefined> {
  if (source.byteLength < CRC_TRAILER) return undefined;
  const trailer = await readBytes(source, source.byteLength - CRC_TRAILER, CRC_TRAILER);
  const mark = latin1(trailer.subarray(0, CRC_MARK.length));
  // Ten big-endian bytes, of which a CRC-32 fills the last four.
  return mark === CRC_MARK ? new DataView(trailer.buffer).getUint32(CRC_TRAILER - 4, false) : undefined;
}

const unread = (path: string, what: string) =>
  unsupported(path, `${what} cannot be read`, "Save a plain checkpoint with MindSpore first.");
