/** safetensors files, and Hugging Face sets of them with an index. */

import { OptError } from "@opt/core";
import { decodeMerged } from "../../format/merged";
import { readSafetensorsHeader, type SafetensorsEntry, type SafetensorsHeader } from "../../format/safetensors";
import type { FormatReader, ReadLimits, SourceTensor, TensorSource } from "../../format/source";
import { FilePool } from "../../stores/file-pool";
import type { FileSystem } from "../../stores/file-system";
import { basename, dirname } from "../../stores/path";
import { byName, wholeTensor } from "../bytes/foreign-tensor";
import { insideOf } from "../bytes/safe-path";
import { type ByteSource, partOf, pooledFile } from "../bytes/source";
import { readIndex } from "./index-file";

/** A single safetensors file. */
export const safetensorsReader: FormatReader = {
  format: "safetensors",
  async open(path, fileSystem, limits) {
    return withPool(fileSystem, this.format, path, async (pool) => {
      const { source, header } = await openSafetensors(pool, path, limits);
      const tensors = header.entries.map((entry) => wholeEntry(source, entry, basename(path)));
      const unreadable = reasons(header);
      const merged = decodeMerged(header.metadata);
      if (!merged) return { tensors, values: saidValues(header.metadata), unreadable };
      const { step, values } = merged;
      const described = tensors.map((tensor) => ({ ...tensor, ...merged.tensors[tensor.name] }));
      return { tensors: described, values, unreadable, ...(step === undefined ? {} : { step }) };
    });
  },
};

/** What a file says beside its tensors, without whose arrays it holds (`format`): that is of the file, and no value of the run. */
export function saidValues({ format: _, ...values }: Readonly<Record<string, string>>): Record<string, string> {
  return values;
}

const INDEX = ".safetensors.index.json";

/** A set that Hugging Face's libraries split by tensor: `model.safetensors.index.json` says which file holds which. */
export const safetensorsIndexReader: FormatReader = {
  format: "sharded safetensors",
  async open(path, fileSystem, limits) {
    const { index, metadata, names } = await readIndex(path, INDEX, fileSystem);
    return withPool(fileSystem, this.format, path, async (pool) => {
      const files = new Map<
        string,
        { source: ByteSource; reasons: Map<string, string>; entries: Map<string, SafetensorsEntry> }
      >();
      const tensors: SourceTensor[] = [];
      const unreadable = new Map<string, string>();
      for (const [name, file] of names) {
        let opened = files.get(file);
        if (opened === undefined) {
          const { source, header } = await openSafetensors(pool, insideOf(dirname(index), file, index), limits);
          opened = {
            source,
            reasons: reasons(header),
            entries: new Map(header.entries.map((entry) => [entry.name, entry])),
          };
          files.set(file, opened);
        }
        const entry = opened.entries.get(name);
        const reason = opened.reasons.get(name);
        if (reason !== undefined) {
          unreadable.set(name, reason);
          continue;
        }
        if (entry === undefined) {
          throw new OptError("MISSING", index, `${file} does not hold ${JSON.stringify(name)}.`, "Copy the set again.");
        }
        tensors.push(wholeEntry(opened.source, entry, file));
      }
      return { tensors, values: metadata, unreadable };
    });
  },
};

/** Opens a file and its header. Throws MISSING, IO, CORRUPT, UNSUPPORTED. */
export async function openSafetensors(
  pool: FilePool,
  path: string,
  limits?: ReadLimits,
): Promise<{ source: ByteSource; header: SafetensorsHeader }> {
  const source = await pooledFile(pool, path);
  return { source, header: await readSafetensorsHeader({ ...source, close: async () => undefined }, limits) };
}

/** Runs `read` with a pool that the source closes; the pool is closed at once when `read` throws. */
export async function withPool(
  fileSystem: FileSystem,
  format: string,
  path: string,
  read: (
    pool: FilePool,
  ) => Promise<Pick<TensorSource, "values" | "step" | "unreadable"> & { readonly tensors: readonly SourceTensor[] }>,
): Promise<TensorSource> {
  const pool = new FilePool(fileSystem, "read");
  try {
    const { tensors, ...rest } = await read(pool);
    return { format, path, tensors: byName(tensors, path), ...rest, close: () => pool.close() };
  } catch (error) {
    await pool.close();
    throw error;
  }
}

/** Why the tensors of a header that cannot be read cannot be. */
export function reasons({ unreadable }: SafetensorsHeader): Map<string, string> {
  return new Map(
    [...unreadable].map(([name, dtype]) => [name, `it has the dtype ${JSON.stringify(dtype.slice(0, 50))}`]),
  );
}

function wholeEntry(source: ByteSource, entry: SafetensorsEntry, file: string): SourceTensor {
  const bytes = partOf(source, entry.begin, entry.end - entry.begin);
  return wholeTensor(entry.name, { dtype: entry.dtype, shape: entry.shape, bytes }, file);
}
