/** MindSpore `.ckpt` files: values one after another, each with its tag, dims, type and contents. */
import { bytesPerElement, type StoredDType } from "../../format/dtype";
import type { Json, SourceTensor } from "../../format/source";
import { basename } from "../../stores/path";
import { corrupt, quoted } from "../bytes/errors";
import { wholeTensor } from "../bytes/foreign-tensor";
import { isObject, parseJson } from "../bytes/json";
import { formatReader } from "../bytes/reader";
import { type ByteSource, joined, readBytes } from "../bytes/source";
import { METADATA_TAG, MINDSPORE_DTYPES, MINDSPORE_TEXT } from "./format";
import { checkMindsporeCrc, type MindsporeValue, readMindsporeValues } from "./values";

const LONGEST_STRING = 1 << 24;

export const mindsporeReader = formatReader("MindSpore ckpt", async ({ path, file }) => {
  const contents = await readMindspore(await file(), basename(path));
  return { ...contents, step: contents.step ?? ageOf(path)?.step };
});

export interface Age {
  readonly epoch: number;
  readonly step: number;
}

/** Of `<prefix>-<epoch>_<step>.ckpt`, as ModelCheckpoint names its files: compared as numbers. */
export function ageOf(name: string): Age | undefined {
  const [, epoch, step] = /-(\d{1,15})_(\d{1,15})\.ckpt$/.exec(name) ?? [];
  return step === undefined ? undefined : { epoch: Number(epoch), step: Number(step) };
}

export interface MindsporeContents {
  readonly tensors: readonly SourceTensor[];
  readonly values: Record<string, Json>;
  readonly unreadable: ReadonlyMap<string, string>;
  /** Where we wrote the file: the step that it is of. */
  readonly step?: number;
}

/** The tensors and texts of one file; its checksum, if it has one, is verified before the first tensor is read. */
export async function readMindspore(source: ByteSource, file: string): Promise<MindsporeContents> {
  const { values: stored, crc, end } = await readMindsporeValues(source);
  let checked: Promise<void> | undefined;
  const guarded = (bytes: ByteSource): ByteSource => ({
    ...bytes,
    isChecked: true,
    async read(target, position) {
      checked ??= checkMindsporeCrc(source, crc!, end);
      await checked;
      await bytes.read(target, position);
    },
  });
  const tensors: SourceTensor[] = [];
  const values: [string, string][] = [];
  const unreadable = new Map<string, string>();
  for (const [{ tag, dims, type }, contents] of joinPieces(stored)) {
    const whole = joined(source.path, contents);
    const bytes = crc === undefined ? whole : guarded(whole);
    if (type === MINDSPORE_TEXT) values.push([tag, await readString(bytes)]);
    else if (Object.hasOwn(MINDSPORE_DTYPES, type)) {
      const dtype = MINDSPORE_DTYPES[type]!;
      tensors.push(wholeTensor(tag, { dtype, shape: shapeOf(dims, bytes.byteLength, dtype), bytes }, file));
    } else unreadable.set(tag, `it has the type ${quoted(type)}`);
  }
  const { [METADATA_TAG]: ours, ...texts } = Object.fromEntries(values);
  const kept = ours === undefined ? {} : parseJson(new TextEncoder().encode(ours), source.path);
  const plain = isObject(kept.values) ? kept.values : {};
  const step = Number.isSafeInteger(kept.step) ? { step: kept.step as number } : {};
  return { tensors, values: { ...texts, ...plain }, unreadable, ...step };
}

/** Consecutive values of one tag with their contents: a large tensor is stored in pieces, each with the whole tensor's dims. */
function joinPieces(values: readonly MindsporeValue[]): [MindsporeValue, ByteSource[]][] {
  const groups: [MindsporeValue, ByteSource[]][] = [];
  for (const value of values) {
    const [first, contents] = groups.at(-1) ?? [];
    if (first?.tag === value.tag && first.type === value.type && `${first.dims}` === `${value.dims}`) {
      contents!.push(value.content);
    } else groups.push([value, [value.content]]);
  }
  return groups;
}

/** A scalar has no dims, or (before MindSpore 1.9) the single dim 0. */
function shapeOf(dims: readonly number[], byteLength: number, dtype: StoredDType): readonly number[] {
  return dims.length === 1 && dims[0] === 0 && byteLength === bytesPerElement(dtype) ? [] : dims;
}

async function readString(bytes: ByteSource): Promise<string> {
  if (bytes.byteLength > LONGEST_STRING || bytes.byteLength % 4 !== 0) {
    throw corrupt(bytes.path, `a text has ${bytes.byteLength} bytes`);
  }
  const utf32 = new DataView((await readBytes(bytes, 0, bytes.byteLength)).buffer);
  const characters: string[] = [];
  for (let at = 0; at < utf32.byteLength; at += 4) {
    const code = utf32.getUint32(at, true);
    if (code > 0x10ffff) throw corrupt(bytes.path, "a text is no UTF-32");
    characters.push(String.fromCodePoint(code));
  }
  return characters.join("");
}
