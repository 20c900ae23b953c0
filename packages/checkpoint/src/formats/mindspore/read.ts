/** MindSpore `.ckpt` files: values one after another, each with its tag, dims, type and contents. */

import { OptError } from "@opt/core";
import { bytesPerElement, type StoredDType } from "../../format/dtype";
import {
  type FormatReader,
  type ImportOptions,
  type Json,
  openRandomAccess,
  type SourceTensor,
  type TensorSource,
} from "../../format/source";
import { basename } from "../../stores/path";
import { byName, wholeTensor } from "../bytes/foreign-tensor";
import { isObject, parseJson } from "../bytes/json";
import { type ByteSource, joined, readBytes, wholeFile } from "../bytes/source";
import { METADATA_TAG, MINDSPORE_DTYPES, MINDSPORE_TEXT } from "./format";
import { checkMindsporeCrc, type MindsporeValue, readMindsporeValues } from "./values";

const LONGEST_STRING = 1 << 24;

export const mindsporeReader: FormatReader = {
  format: "MindSpore ckpt",
  async open(path, fileSystem, options): Promise<TensorSource> {
    const file = await openRandomAccess(fileSystem, path);
    try {
      const name = basename(path);
      const { tensors, values, unreadable, step } = await readMindspore(wholeFile(file), name, options);
      const named = step ?? stepOfName(name);
      const known = named === undefined ? {} : { step: named };
      const close = (): Promise<void> => file.close();
      return { format: this.format, path, ...known, tensors: byName(tensors, path), values, unreadable, close };
    } catch (error) {
      await file.close();
      throw error;
    }
  },
};

/** `<prefix>-<epoch>_<step>.ckpt`, as ModelCheckpoint names its files. */
function stepOfName(name: string): number | undefined {
  const step = /-\d+_(\d{1,15})\.ckpt$/.exec(name)?.[1];
  return step === undefined ? undefined : Number(step);
}

export interface MindsporeContents {
  readonly tensors: readonly SourceTensor[];
  readonly values: Record<string, Json>;
  /** Why a parameter cannot be read, by name. */
  readonly unreadable: ReadonlyMap<string, string>;
  /** Where we wrote the file: the step that it is of. */
  readonly step?: number;
}

/** The tensors and texts of one file; its checksum, if it has one, is verified before the first tensor is read. */
export async function readMindspore(
  source: ByteSource,
  file: string,
  options: ImportOptions = {},
): Promise<MindsporeContents> {
  const { values: stored, crc, end } = await readMindsporeValues(source, options);
  let checked: Promise<void> | undefined;
  const guarded = (bytes: ByteSource): ByteSource =>
    crc === undefined
      ? bytes
      : {
          ...bytes,
          isChecked: true,
          async read(target, position) {
            checked ??= checkMindsporeCrc(source, crc, end);
            await checked;
            await bytes.read(target, position);
          },
        };
  const tensors: SourceTensor[] = [];
  const values: [string, string][] = [];
  const unreadable = new Map<string, string>();
  for (const pieces of piecesOfOneTag(stored)) {
    const { tag, dims, type } = pieces[0]!;
    const bytes = guarded(
      joined(
        source.path,
        pieces.map(({ content }) => content),
      ),
    );
    if (type === MINDSPORE_TEXT) values.push([tag, await readString(bytes)]);
    else if (Object.hasOwn(MINDSPORE_DTYPES, type)) {
      const dtype = MINDSPORE_DTYPES[type]!;
      tensors.push(wholeTensor(tag, { dtype, shape: shapeOf(dims, bytes.byteLength, dtype), bytes }, file));
    } else unreadable.set(tag, `it has the type ${JSON.stringify(type.slice(0, 50))}`);
  }
  const { [METADATA_TAG]: ours, ...texts } = Object.fromEntries(values);
  const kept = ours === undefined ? {} : parseJson(new TextEncoder().encode(ours), source.path);
  const plain = isObject(kept.values as Json) ? (kept.values as Record<string, Json>) : {};
  const step = Number.isSafeInteger(kept.step) ? { step: kept.step as number } : {};
  return { tensors, values: { ...texts, ...plain }, unreadable, ...step };
}

/** Groups consecutive values of one tag: a large tensor is stored in pieces, each with the whole tensor's dims. */
function piecesOfOneTag(values: readonly MindsporeValue[]): MindsporeValue[][] {
  const groups: MindsporeValue[][] = [];
  for (const value of values) {
    const last = groups.at(-1);
    const first = last?.[0];
    const continues = first?.tag === value.tag && first.type === value.type && `${first.dims}` === `${value.dims}`;
    if (continues) last!.push(value);
    else groups.push([value]);
  }
  return groups;
}

/** A scalar has no dims, or (before MindSpore 1.9) the single dim 0. */
function shapeOf(dims: readonly number[], byteLength: number, dtype: StoredDType): readonly number[] {
  return dims.length === 1 && dims[0] === 0 && byteLength === bytesPerElement(dtype) ? [] : dims;
}

async function readString(bytes: ByteSource): Promise<string> {
  if (bytes.byteLength > LONGEST_STRING || bytes.byteLength % 4 !== 0) {
    throw new OptError("CORRUPT", bytes.path, `a text has ${bytes.byteLength} bytes.`, "Use an intact copy.");
  }
  const utf32 = new DataView((await readBytes(bytes, 0, bytes.byteLength)).buffer);
  const characters: string[] = [];
  for (let at = 0; at < utf32.byteLength; at += 4) {
    const code = utf32.getUint32(at, true);
    if (code > 0x10ffff) throw new OptError("CORRUPT", bytes.path, "a text is no UTF-32.", "Use an intact copy.");
    characters.push(String.fromCodePoint(code));
  }
  return characters.join("");
}
