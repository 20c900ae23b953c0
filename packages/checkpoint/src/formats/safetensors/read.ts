/** safetensors files. */
import { readSafetensorsHeader, type SafetensorsEntry } from "../../format/safetensors";
import type { ReadLimits } from "../../format/source";
import { quoted } from "../bytes/errors";
import { type ForeignTensor, wholeTensors } from "../bytes/foreign-tensor";
import { formatReader } from "../bytes/reader";
import { type ByteSource, partOf } from "../bytes/source";
import { indexReader } from "./read-index";
import { Said } from "./said";

export const safetensorsReader = formatReader("safetensors", async ({ path, file, options }) => {
  const { metadata, ...read } = await readSafetensors(await file(), options);
  const said = new Said();
  said.add(metadata);
  const tensors = wholeTensors(read.tensors, path).map((tensor) => said.described(tensor));
  return { tensors, values: said.values, unreadable: read.unreadable, step: said.step };
});

/** `model.safetensors.index.json` and its files. */
export const safetensorsIndexReader = indexReader("sharded safetensors", ".safetensors.index.json", readSafetensors);

export interface SafetensorsContents {
  readonly tensors: ReadonlyMap<string, ForeignTensor>;
  readonly unreadable: ReadonlyMap<string, string>;
  readonly metadata: Readonly<Record<string, string>>;
}

/** The header of a file, and its tensors where they lie. @throws OptError CORRUPT, REFUSED */
export async function readSafetensors(source: ByteSource, limits?: ReadLimits): Promise<SafetensorsContents> {
  const header = await readSafetensorsHeader({ ...source, close: async () => undefined }, limits);
  const foreign = ({ dtype, shape, begin, end }: SafetensorsEntry): ForeignTensor => {
    return { dtype, shape, bytes: partOf(source, begin, end - begin) };
  };
  const reasons = [...header.unreadable].map(([name, dtype]) => [name, `it has the dtype ${quoted(dtype)}`] as const);
  return {
    tensors: new Map(header.entries.map((entry) => [entry.name, foreign(entry)])),
    unreadable: new Map(reasons),
    metadata: header.metadata,
  };
}
