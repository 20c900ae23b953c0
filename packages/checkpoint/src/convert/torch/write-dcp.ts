/** PyTorch's distributed checkpoints (DCP): each chunk and object is a `torch.save` archive, and `.metadata` says where it lies. */

import { bytesPerElement } from "../../format/dtype";
import type { SourceTensor, TensorSource } from "../../format/source";
import { duplicate } from "../../formats/bytes/errors";
import { dictionary, PickleCall, PickleGlobal, PickleTuple } from "../../formats/python/pickle-objects";
import { dictOf, itemsOf, type PythonTree, tensorOf } from "../../formats/python/tree";
import { METADATA, STORAGE_INFO } from "../../formats/torch/dcp-metadata";
import { keyOf } from "../../formats/torch/optimizers";
import { torchTypeNames } from "../../formats/torch/tensors";
import { type Box, elementsIn, wholeOf } from "../../layout/box";
import { type StreamedTensor, streamTensors } from "../../read/stream";
import { writeBytes } from "../../stores/file-system";
import { join } from "../../stores/path";
import { SequenceWriter } from "../files/write-sequence";
import { type ExportOptions, writeFile, writeFolder } from "../files/write-whole";
import { writePickle } from "../python/write-pickle";
import { type Member, zipParts } from "../zip/write";
import { torchArchive } from "./write";
import { torchObject } from "./write-state-dict";

export interface DcpOptions extends ExportOptions {
  /** Larger tensors are stored in several chunks: torch reads a chunk at once. Default 256 MiB. */
  readonly largestChunk?: number;
}

const MOST_ARCHIVES = 1000;
const LARGEST_CHUNK = 256 * 1024 * 1024;
const DATA = "__0_0.distcp";

/** One item of the flattened state dict, as DCP flattens it. */
interface Item {
  readonly name: string;
  readonly path: readonly (string | number)[];
  readonly leaf: PythonTree;
}

interface StoredChunk {
  readonly name: string;
  /** Where the chunk begins in its tensor; undefined for plain objects. */
  readonly offset?: readonly number[];
  readonly begin: number;
  readonly length: number;
}

/**
 * Writes `{ model, optim, ... }`, or the nesting that the source had in PyTorch.
 *
 * @throws OptError UNSUPPORTED, MISSING for gaps, BAD_ARGUMENT, IO
 */
export async function writeDcp(source: TensorSource, path: string, options: DcpOptions = {}): Promise<void> {
  const { tree, tensors } = await torchObject(source, "named");
  const items = flatten(tree, path);
  await writeFolder(path, options, async (folder, fileSystem) => {
    const stored: StoredChunk[] = [];
    const chunks = new Map<string, readonly Box[]>();
    await writeFile(fileSystem, join(folder, DATA), async (file) => {
      const writer = new SequenceWriter(file);
      const write = (bytes: Uint8Array): Promise<void> => writer.write(bytes);
      const archives = new Map<string, readonly Member[]>();
      const add = (item: Omit<StoredChunk, "begin" | "length">, members: readonly Member[]): void => {
        const begin = writer.announced;
        writer.announce(zipParts(members));
        stored.push({ ...item, begin, length: writer.announced - begin });
      };
      // Chunks of one type and shape differ in their bytes alone.
      const archiveOf = (tensor: Pick<SourceTensor, "dtype" | "shape">): readonly Member[] => {
        const key = `${tensor.dtype} ${tensor.shape}`;
        const members = archives.get(key) ?? torchArchive({ tensor: "" }, () => tensor, path).members;
        if (archives.size < MOST_ARCHIVES) archives.set(key, members);
        return members;
      };
      // Each is announced when its turn comes: the archives of all would fill the memory.
      const streamed = function* (): Generator<StreamedTensor> {
        for (const { name, leaf } of items) {
          const tensor = tensors.get(tensorOf(leaf) ?? "");
          if (tensor === undefined) {
            add({ name }, torchArchive(leaf, () => tensor!, path).members);
            continue;
          }
          const boxes = rowsOf(tensor, options.largestChunk ?? LARGEST_CHUNK);
          chunks.set(name, boxes);
          for (const box of boxes)
            add({ name, offset: box.offset }, archiveOf({ dtype: tensor.dtype, shape: box.size }));
          yield { tensor, targets: boxes.map((box) => ({ box, write })) };
        }
      };
      await streamTensors(streamed(), options);
      return writer.finish();
    });
    const metadata = metadataPickle(items, stored, chunks, (leaf) => tensors.get(tensorOf(leaf) ?? ""));
    await writeBytes(fileSystem, join(folder, ".metadata"), metadata);
  });
}

/** Dicts are taken apart, and lists and tuples that hold tensors or dicts; everything else is one item. Source: torch's traverse_state_dict. */
function flatten(tree: PythonTree, where: string): Item[] {
  const items = new Map<string, Item>();
  const visit = (value: PythonTree, path: readonly (string | number)[]): void => {
    const members = dictOf(value);
    if (members !== undefined) for (const [key, member] of members) visit(member, [...path, keyOf(key)]);
    else if (isTraversed(value)) for (const [i, member] of itemsOf(value)!.entries()) visit(member, [...path, i]);
    else {
      const name = path.join(".");
      if (items.has(name)) throw duplicate(where, `two items are called ${JSON.stringify(name)}`);
      items.set(name, { name, path, leaf: value });
    }
  };
  visit(tree, []);
  return [...items.values()];
}

function isTraversed(tree: PythonTree): boolean {
  const items = itemsOf(tree) ?? [];
  return items.some((item) => tensorOf(item) !== undefined || dictOf(item) !== undefined || isTraversed(item));
}

/** The tensor cut along its first dimension, so that no part but a single row is larger than `most` bytes. */
function rowsOf({ shape, dtype }: SourceTensor, most: number): Box[] {
  const whole = wholeOf(shape);
  const [rows = 0, ...inner] = shape;
  const row = elementsIn(wholeOf(inner)) * bytesPerElement(dtype);
  if (shape.length === 0 || rows * row <= most) return [whole];
  const each = Math.max(1, Math.floor(most / row));
  return Array.from({ length: Math.ceil(rows / each) }, (_, i) => ({
    offset: whole.offset.with(0, i * each),
    size: whole.size.with(0, Math.min(each, rows - i * each)),
  }));
}

function metadataPickle(
  items: readonly Item[],
  stored: readonly StoredChunk[],
  chunks: ReadonlyMap<string, readonly Box[]>,
  tensorOfLeaf: (leaf: PythonTree) => SourceTensor | undefined,
): Uint8Array {
  const size = (dims: readonly number[]) => new PickleCall("torch.Size", [new PickleTuple(dims)]);
  const object = (name: string, state: object): PickleCall => {
    const call = new PickleCall(name.includes(".") ? name : `${METADATA}${name}`, []);
    call.state = state instanceof PickleTuple ? state : dictionary({ ...state });
    return call;
  };
  const properties = (dtype: SourceTensor["dtype"]): PickleCall => {
    const layout = new PickleCall("torch.serialization._get_layout", ["torch.strided"]);
    const format = new PickleCall(`${METADATA}_MEM_FORMAT_ENCODING`, [0]);
    const type = new PickleGlobal(`torch.${torchTypeNames(dtype).dtype}`);
    return object("TensorProperties", new PickleTuple([type, layout, false, format, false]));
  };
  const described = items.map(({ name, leaf }) => {
    const tensor = tensorOfLeaf(leaf);
    if (tensor === undefined) return [name, object("BytesStorageMetadata", {})] as const;
    const parts = chunks.get(name)!.map((box) => {
      return object("ChunkStorageMetadata", { offsets: size(box.offset), sizes: size(box.size) });
    });
    const state = { properties: properties(tensor.dtype), size: size(tensor.shape), chunks: parts };
    return [name, object("TensorStorageMetadata", state)] as const;
  });
  const places = stored.map(({ name, offset, begin, length }) => {
    const index = { fqn: name, offset: offset === undefined ? null : size(offset), index: null };
    const place = { relative_path: DATA, offset: begin, length };
    return [object("MetadataIndex", index), object(STORAGE_INFO, place)] as const;
  });
  const metadata = {
    state_dict_metadata: new Map(described),
    planner_data: new Map(items.map(({ name, path }) => [name, new PickleTuple(path)])),
    storage_data: new Map(places),
    storage_meta: null,
    version: "1.0.0",
  };
  return writePickle(object("Metadata", metadata));
}
