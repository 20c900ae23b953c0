/** Writes MindSpore `.ckpt` files, byte for byte as MindSpore does: a message for each tensor, large ones in several. */
import { bytesPerElement } from "../../format/dtype";
import type { SourceTensor, TensorSource } from "../../format/source";
import { unsupported } from "../../formats/bytes/errors";
import { LARGEST_PIECE, METADATA_TAG, MINDSPORE_TEXT, mindsporeType } from "../../formats/mindspore/format";
import { mindsporeCrcTrailer, mindsporeValueHead } from "../../formats/mindspore/values";
import { mindsporeName } from "../../formats/names/states";
import { type Box, elementCount, wholeOf } from "../../layout/box";
import { type StreamTarget, streamTensors } from "../../read/stream";
import type { OpenFile } from "../../stores/file-system";
import { known, type Part, SequenceWriter } from "../files/write-sequence";
import { type ExportOptions, writeWhole } from "../files/write-whole";

export interface MindsporeOptions extends ExportOptions {
  /** End the file with a checksum (`crc_check` in MindSpore). Default false. */
  readonly crc?: boolean;
  /** Tensors larger than this many bytes are stored in several values. Default 512 MiB, MindSpore's own. */
  readonly largestPiece?: number;
}

/**
 * Writes every tensor and text into one `.ckpt`, whole or not at all.
 *
 * @throws OptError UNSUPPORTED for dtypes that MindSpore lacks, MISSING, IO
 */
export async function writeMindspore(
  source: TensorSource,
  path: string,
  options: MindsporeOptions = {},
): Promise<{ byteLength: number }> {
  for (const tensor of source.tensors.values()) mindsporeTypeOf(tensor);
  return writeWhole(path, options, async (file) => {
    const [byteLength] = await writeMindsporeFiles(source, [file], ({ shape }) => wholeOf(shape), options);
    return byteLength!;
  });
}

/** Writes what each file holds of the tensors, all in one pass over them; returns the files' lengths. */
export async function writeMindsporeFiles(
  source: TensorSource,
  files: readonly Pick<OpenFile, "write">[],
  boxOf: (tensor: SourceTensor, file: number) => Box,
  options: MindsporeOptions,
): Promise<number[]> {
  const writers = files.map((file) => new SequenceWriter(file));
  const streamed = Array.from(source.tensors.values(), (tensor) => {
    const targets = writers.map((writer, i): StreamTarget => {
      const box = boxOf(tensor, i);
      writer.announce(mindsporeParts(tensor, box.size, options.largestPiece));
      return { box, write: (bytes) => writer.write(bytes) };
    });
    return { tensor, targets };
  });
  for (const writer of writers) writer.announce(mindsporeTexts(source));
  await streamTensors(streamed, options);
  const lengths: number[] = [];
  for (const writer of writers) {
    await writer.finish();
    if (options.crc === true) writer.announce([known(mindsporeCrcTrailer(writer.crc))]);
    lengths.push(await writer.finish());
  }
  return lengths;
}

/** The values of a tensor whose part of this shape is stored: one, or several where it is large. */
function mindsporeParts(tensor: SourceTensor, shape: readonly number[], largestPiece = LARGEST_PIECE): Part[] {
  const width = bytesPerElement(tensor.dtype);
  const count = elementCount(shape)!;
  const name = mindsporeName(tensor.name, tensor.follows);
  // Scalars have the single dim 0, which all versions of MindSpore read.
  const dims = shape.length === 0 ? [0] : shape;
  // As numpy.array_split: the first parts are one element longer where the count does not divide.
  const pieces = Math.max(1, Math.ceil((count * width) / largestPiece));
  return Array.from({ length: pieces }, (_, piece) => {
    const content = (Math.floor(count / pieces) + (piece < count % pieces ? 1 : 0)) * width;
    return known(mindsporeValueHead(name, dims, mindsporeTypeOf(tensor), content), content);
  });
}

/** Texts under their own names; what MindSpore has no form for in one text of ours. */
function mindsporeTexts({ values, step }: TensorSource): Part[] {
  const texts = Object.entries(values).filter((entry): entry is [string, string] => typeof entry[1] === "string");
  const others = Object.entries(values).filter(([, value]) => typeof value !== "string");
  if (others.length > 0) texts.push([METADATA_TAG, JSON.stringify({ step, values: Object.fromEntries(others) })]);
  return texts.map(([tag, text]) => {
    const characters = Uint32Array.from(text, (character) => character.codePointAt(0)!);
    const content = new Uint8Array(characters.buffer);
    const head = mindsporeValueHead(tag, [characters.length], MINDSPORE_TEXT, content.length);
    return known(Uint8Array.from([...head, ...content]));
  });
}

/** @throws OptError UNSUPPORTED for a dtype that MindSpore has not */
export function mindsporeTypeOf({ name, dtype }: SourceTensor): string {
  const type = mindsporeType(dtype);
  if (type !== undefined) return type;
  throw unsupported(name, `MindSpore has no ${dtype}`, "Convert the tensor to another dtype first.");
}
