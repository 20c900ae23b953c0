/** PyTorch DCP folders: every chunk in the `.distcp` files is a complete `torch.save` file and becomes a box. */

import { OptError } from "@opt/core";
import { bytesPerElement } from "../../format/dtype";
import type { FormatReader, Json, SourceBox, SourceTensor } from "../../format/source";
import { elementCount } from "../../layout/box";
import { FilePool } from "../../stores/file-pool";
import { join } from "../../stores/path";
import { byName, checkFilled, type ForeignTensor, wholeTensor } from "../bytes/foreign-tensor";
import { insideOf } from "../bytes/safe-path";
import { partOf, pooledFile } from "../bytes/source";
import { type PythonTree, renameTensors } from "../python/tree";
import type { NamedTree } from "../python/values";
import { type DcpChunk, type DcpLocation, readDcpMetadata } from "./dcp-metadata";
import { nestedTree } from "./nested";
import { readTorch, stepOf } from "./read";

export const dcpReader: FormatReader = {
  format: "PyTorch DCP",
  async open(path, fileSystem, options = {}) {
    const files = new FilePool(fileSystem, "read");
    const readAt = async ({ file, begin, byteLength }: DcpLocation): Promise<NamedTree<ForeignTensor>> => {
      const source = await pooledFile(files, insideOf(path, file, path));
      return readTorch(partOf(source, begin, byteLength), options);
    };
    try {
      const metadata = await readDcpMetadata(await pooledFile(files, join(path, ".metadata")), options);
      const tensors: SourceTensor[] = [];
      const values: Record<string, Json> = {};
      const unreadable = new Map<string, string>();
      const leaves = new Map<string, PythonTree>();
      for (const [name, stored] of metadata.items) {
        leaves.set(name, { tensor: name });
        if (stored?.dtype !== undefined) {
          const { dtype, shape } = stored;
          const boxes = stored.chunks.map((chunk) => {
            const location = metadata.locate(name, chunk.offset);
            insideOf(path, location.file, path);
            return chunkBox(name, { dtype, shape }, chunk, String(location.file), () => readAt(location));
          });
          tensors.push({ name, dtype, shape, boxes });
          continue;
        }
        if (stored !== undefined) {
          unreadable.set(name, "its element type is not known here");
          continue;
        }
        const location = metadata.locate(name);
        const tree = await readAt(location);
        const inner = (key: string): string => (key === "" ? name : `${name}.${key}`);
        for (const [key, value] of Object.entries(tree.values)) values[inner(key)] = value;
        for (const [key, tensor] of tree.tensors) tensors.push(wholeTensor(inner(key), tensor, String(location.file)));
        for (const [key, reason] of tree.unreadable) unreadable.set(inner(key), reason);
        leaves.set(name, renameTensors(tree.tree, inner)!);
      }
      const structure = nestedTree(leaves, metadata.paths) as Json;
      const found = byName(tensors, path);
      const close = (): Promise<void> => files.close();
      return { format: this.format, path, ...stepOf(values), tensors: found, values, unreadable, structure, close };
    } catch (error) {
      await files.close();
      throw error;
    }
  },
};

/** A chunk's box; its file is looked into when the box is first read. */
function chunkBox(
  name: string,
  { dtype, shape }: Pick<SourceTensor, "dtype" | "shape">,
  { offset, size }: DcpChunk,
  file: string,
  open: () => Promise<NamedTree<ForeignTensor>>,
): SourceBox {
  const inside = size.length === shape.length && offset.length === shape.length;
  const count = elementCount(size);
  if (!inside || count === undefined || size.some((length, d) => offset[d]! + length > shape[d]!)) {
    throw new OptError(
      "CORRUPT",
      file,
      `chunk [${size}] at [${offset}] of ${JSON.stringify(name)} leaves its tensor [${shape}].`,
      "The metadata is damaged: use an intact copy.",
    );
  }
  let chunk: Promise<ForeignTensor> | undefined;
  const load = async (): Promise<ForeignTensor> => {
    const [tensor, ...others] = (await open()).tensors.values();
    if (tensor === undefined || others.length > 0 || tensor.dtype !== dtype || `${tensor.shape}` !== `${size}`) {
      throw new OptError(
        "CORRUPT",
        file,
        `the chunk of ${JSON.stringify(name)} must be ${dtype} [${size}], got ${tensor?.dtype} [${tensor?.shape}].`,
        "The file and its metadata do not belong together.",
      );
    }
    checkFilled(tensor, name);
    return tensor;
  };
  return {
    offset,
    size,
    byteLength: count * bytesPerElement(dtype),
    file,
    async read(target, start) {
      chunk ??= load();
      await (await chunk).bytes.read(target, start);
    },
  };
}
