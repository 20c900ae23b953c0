/** Sets that Hugging Face's libraries split by tensor, of safetensors or PyTorch files: `weight_map` in an index says which file holds which. */
import { OptError } from "@opt/core";
import { type FormatReader, type ImportOptions, type Json, readWhole, type SourceTensor } from "../../format/source";
import type { FileSystem } from "../../stores/file-system";
import { dirname, join } from "../../stores/path";
import { corrupt, missing } from "../bytes/errors";
import { type ForeignTensor, wholeTensor } from "../bytes/foreign-tensor";
import { isObject, parseJson } from "../bytes/json";
import { formatReader } from "../bytes/reader";
import { insideOf } from "../bytes/safe-path";
import type { ByteSource } from "../bytes/source";
import { Said } from "./said";

const LARGEST_INDEX = 64 * 1024 * 1024;

interface FileContents {
  readonly tensors: ReadonlyMap<string, ForeignTensor>;
  readonly unreadable: ReadonlyMap<string, string>;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** The reader of sets whose index has this ending and whose files `read` understands. */
export function indexReader(
  format: string,
  ending: string,
  read: (source: ByteSource, options: ImportOptions) => Promise<FileContents>,
): FormatReader {
  return formatReader(format, async ({ path, fileSystem, file, options }) => {
    const index = path.endsWith(ending) ? path : await indexIn(path, ending, fileSystem);
    const { metadata, names } = await readIndex(index, fileSystem);
    const said = new Said();
    const opened = new Map<string, FileContents>();
    const tensors: SourceTensor[] = [];
    const unreadable = new Map<string, string>();
    for (const [name, held] of names) {
      let contents = opened.get(held);
      if (contents === undefined) {
        contents = await read(await file(insideOf(dirname(index), held, index)), options);
        said.add(contents.metadata ?? {});
        opened.set(held, contents);
      }
      const [tensor, reason] = [contents.tensors.get(name), contents.unreadable.get(name)];
      if (reason !== undefined) unreadable.set(name, reason);
      else if (tensor !== undefined) tensors.push(wholeTensor(name, tensor, held));
      else throw missing(index, `${held} does not hold ${JSON.stringify(name)}`, "Copy the set again.");
    }
    const described = tensors.map((tensor) => said.described(tensor));
    return { tensors: described, step: said.step, values: { ...metadata, ...said.values }, unreadable };
  });
}

async function readIndex(index: string, fileSystem: FileSystem) {
  const root = parseJson(await readWhole(fileSystem, index, LARGEST_INDEX), index);
  const names = isObject(root.weight_map) ? Object.entries(root.weight_map) : [];
  if (names.length === 0 || names.some(([, file]) => typeof file !== "string")) {
    throw corrupt(index, "weight_map must map tensors to files", "Copy the set again.");
  }
  // Sizes are of the files, and no values of the run.
  const said = { ...(root.metadata as Record<string, Json> | undefined) };
  const { total_size: _, total_parameters: __, ...metadata } = said;
  return { metadata, names: names as [string, string][] };
}

async function indexIn(folder: string, ending: string, fileSystem: FileSystem): Promise<string> {
  const found = (await fileSystem.list(folder)).map(({ name }) => name).filter((name) => name.endsWith(ending));
  const [index, ...others] = found;
  if (index !== undefined && others.length === 0) return join(folder, index);
  const problem = `one index must be there, got ${found.join(", ")}.`;
  throw new OptError("BAD_ARGUMENT", folder, problem, "Name the index itself.");
}
