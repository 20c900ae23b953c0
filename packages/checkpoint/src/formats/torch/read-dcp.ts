/** PyTorch DCP folders: every chunk in the `.distcp` files is a complete `torch.save` file and becomes a box. */
import { bytesPerElement } from "../../format/dtype";
import { type Json, LazyTensor, type Skipped, type SourceBox, type SourceTensor } from "../../format/source";
import { elementCount, elementsIn } from "../../layout/box";
import { join } from "../../stores/path";
import { corrupt } from "../bytes/errors";
import { checkFilled, type ForeignTensor, wholeTensor } from "../bytes/foreign-tensor";
import { formatReader, type ImportSource } from "../bytes/reader";
import { insideOf } from "../bytes/safe-path";
import { partOf, readBytes } from "../bytes/source";
import { type PythonTree, renameTensors } from "../python/tree";
import type { NamedTree } from "../python/values";
import { readSafetensors, type SafetensorsContents } from "../safetensors/read";
import { beginsWithHeader } from "../safetensors/signature";
import { type DcpChunk, type DcpLocation, nestedTree, readDcpMetadata } from "./dcp-metadata";
import { readTorch, stepOf } from "./read";

type StoredTree = NamedTree<ForeignTensor>;

export const dcpReader = formatReader("PyTorch DCP", readDcp);

/** What a DCP folder holds, under its own names. @throws OptError CORRUPT, MISSING, REFUSED, UNSUPPORTED */
export async function readDcp({ path, file: open, options }: Pick<ImportSource, "path" | "file" | "options">) {
  const readAt = async ({ file, begin, byteLength }: DcpLocation): Promise<StoredTree> =>
    readTorch(partOf(await open(insideOf(path, file, path)), begin, byteLength));
  // Safetensors files hold all tensors of a rank, and the metadata says nothing of where.
  const headers = new Map<string, Promise<SafetensorsContents>>();
  const tensorAt = async (name: string, location: DcpLocation): Promise<ForeignTensor | undefined> => {
    const source = await open(insideOf(path, location.file, path));
    const isSafetensors =
      location.begin === 0 && beginsWithHeader(await readBytes(source, 0, Math.min(9, source.byteLength)));
    if (isSafetensors) {
      const header = headers.get(source.path) ?? readSafetensors(source, options);
      headers.set(source.path, header);
      return (await header).tensors.get(name);
    }
    const [tensor, ...others] = (await readAt(location)).tensors.values();
    return others.length > 0 ? undefined : tensor;
  };
  const metadata = await readDcpMetadata(await open(join(path, ".metadata")), options);
  const tensors: SourceTensor[] = [];
  const values: Record<string, Json> = {};
  const unreadable = new Map<string, string>();
  const skipped: Skipped[] = [];
  const leaves = new Map<string, PythonTree>();
  for (const file of metadata.files) insideOf(path, file, path);
  for (const [name, stored] of metadata.items) {
    leaves.set(name, { tensor: name });
    if (stored?.dtype !== undefined) {
      const { dtype, shape } = stored;
      const described = { name, dtype, shape };
      for (const [i, chunk] of stored.chunks.entries()) {
        metadata.find(name, chunk.offset, i);
        checkChunk(described, chunk, path);
      }
      const boxes = () =>
        stored.chunks.map((chunk, i) => {
          const location = metadata.location(metadata.find(name, chunk.offset, i));
          return new ChunkBox(described, chunk, location, () => tensorAt(name, location));
        });
      tensors.push(new LazyTensor(described, boxes));
      continue;
    }
    if (stored !== undefined) {
      unreadable.set(name, "its element type is not known here");
      continue;
    }
    const location = metadata.location(metadata.find(name));
    const tree = await readAt(location);
    const inner = (key: string): string => (key === "" ? name : `${name}.${key}`);
    for (const [key, value] of Object.entries(tree.values)) values[inner(key)] = value;
    for (const [key, tensor] of tree.tensors) tensors.push(wholeTensor(inner(key), tensor, String(location.file)));
    for (const [key, reason] of tree.unreadable) unreadable.set(inner(key), reason);
    for (const each of tree.skipped) skipped.push({ ...each, name: inner(each.name) });
    leaves.set(name, renameTensors(tree.tree, inner)!);
  }
  const structure = nestedTree(leaves, metadata.paths) as Json;
  return { tensors, step: stepOf(values), values, unreadable, skipped, structure };
}

type Described = Pick<SourceTensor, "name" | "dtype" | "shape">;

/** @throws OptError CORRUPT for a chunk that leaves its tensor */
function checkChunk({ name, shape }: Described, { offset, size }: DcpChunk, path: string): void {
  const inside = size.length === shape.length && offset.length === shape.length && elementCount(size) !== undefined;
  if (!inside || size.some((length, d) => offset[d]! + length > shape[d]!)) {
    throw corrupt(path, `chunk [${size}] at [${offset}] of ${JSON.stringify(name)} leaves its tensor [${shape}]`);
  }
}

/** A chunk's box; its file is looked into when the box is first read. */
class ChunkBox implements SourceBox {
  readonly offset: readonly number[];
  readonly size: readonly number[];
  readonly byteLength: number;
  readonly file: string;
  /** Known once something of it was read. */
  isChecked = false;
  #chunk: Promise<ForeignTensor> | undefined;

  constructor(
    readonly described: Described,
    chunk: DcpChunk,
    readonly packed: DcpLocation,
    readonly open: () => Promise<ForeignTensor | undefined>,
  ) {
    this.file = String(packed.file);
    this.offset = chunk.offset;
    this.size = chunk.size;
    this.byteLength = elementsIn(chunk) * bytesPerElement(described.dtype);
  }

  async read(target: Uint8Array, start: number): Promise<void> {
    this.#chunk ??= this.#load();
    await (await this.#chunk).bytes.read(target, start);
  }

  async #load(): Promise<ForeignTensor> {
    const { name, dtype } = this.described;
    const tensor = await this.open();
    if (tensor === undefined || tensor.dtype !== dtype || `${tensor.shape}` !== `${this.size}`) {
      const problem = `the chunk of ${JSON.stringify(name)} must be ${dtype} [${this.size}], got ${tensor?.dtype} [${tensor?.shape}]`;
      throw corrupt(this.file, problem, "The file and its metadata do not belong together.");
    }
    checkFilled(tensor, name);
    this.isChecked = tensor.bytes.isChecked ?? false;
    return tensor;
  }
}
