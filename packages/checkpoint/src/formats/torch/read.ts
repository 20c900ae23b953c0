/** PyTorch `.pt` and `.pth` files: a zip of a pickle and its storages, or (before 1.6) pickles followed by raw storages. */

import { OptError } from "@opt/core";
import {
  type FormatReader,
  type ImportOptions,
  type Json,
  openRandomAccess,
  type TensorSource,
} from "../../format/source";
import { basename } from "../../stores/path";
import { ByteCursor } from "../bytes/cursor";
import { byName, type ForeignTensor, wholeTensor } from "../bytes/foreign-tensor";
import { type ByteSource, partOf, readBytes, wholeFile } from "../bytes/source";
import { type PickleLimits, readPickle, readPickleOf } from "../python/pickle";
import type { PicklePersistent } from "../python/pickle-objects";
import { pickleMemory } from "../python/pickle-stack";
import { type NamedTree, nameTree } from "../python/values";
import { openZip } from "../zip/read";
import { type StorageId, storageId, TORCH_PICKLE, torchTensor } from "./tensors";

const LEGACY_MAGIC = 0x1950a86a20f9469cfc6cn;
const LEGACY_PROTOCOL = 1001;
const LONGEST_PICKLE = 1 << 30;

export const torchFileReader: FormatReader = {
  format: "PyTorch",
  async open(path, fileSystem, options): Promise<TensorSource> {
    const file = await openRandomAccess(fileSystem, path);
    try {
      const tree = await readTorch(wholeFile(file), options);
      const name = basename(path);
      const tensors = [...tree.tensors].map(([key, tensor]) => wholeTensor(key || "tensor", tensor, name));
      return {
        format: this.format,
        path,
        tensors: byName(tensors, path),
        ...stepOf(tree.values),
        values: tree.values,
        unreadable: tree.unreadable,
        structure: tree.tree as Json,
        close: () => file.close(),
      };
    } catch (error) {
      await file.close();
      throw error;
    }
  },
};

/** The step that a training loop kept: `global_step` (Lightning, Transformers) or `step`. */
export function stepOf(values: { readonly [key: string]: Json }): { step?: number } {
  const step = [values.global_step, values.step].find((value) => Number.isSafeInteger(value) && (value as number) >= 0);
  return step === undefined ? {} : { step: step as number };
}

/** The named tensors and values of what `torch.save` wrote, zip or legacy. Throws CORRUPT, REFUSED, UNSUPPORTED, DUPLICATE. */
export async function readTorch(source: ByteSource, options: ImportOptions = {}): Promise<NamedTree<ForeignTensor>> {
  const head = await readBytes(source, 0, Math.min(4, source.byteLength));
  const limits = { ...TORCH_PICKLE, ...pickleMemory(options) };
  const { root, pickle, storage } =
    head[0] === 0x50 ? await readTorchZip(source, limits, options) : await readLegacy(source, limits);
  return nameTree(root, pickle, (value) => torchTensor(value, pickle, storage), options);
}

interface TorchPickle {
  readonly root: unknown;
  readonly pickle: ByteSource;
  storage(id: StorageId): ByteSource;
}

async function readTorchZip(source: ByteSource, limits: PickleLimits, options: ImportOptions): Promise<TorchPickle> {
  const members = await openZip(source, options);
  const name = [...members.keys()].find((member) => /^[^/]+\/data\.pkl$/.test(member));
  const pickle = name === undefined ? undefined : members.get(name);
  if (name === undefined || pickle === undefined) throw corrupt(source.path, "the archive has no data.pkl");
  const folder = name.slice(0, -"data.pkl".length);
  const order = members.get(`${folder}byteorder`);
  if (
    order !== undefined &&
    new TextDecoder().decode(await readBytes(order, 0, Math.min(16, order.byteLength))) !== "little"
  ) {
    throw bigEndian(source.path);
  }
  if (pickle.byteLength > LONGEST_PICKLE) throw corrupt(pickle.path, "the pickle is longer than 1 GiB");
  return {
    root: await readPickleOf(pickle, limits),
    pickle,
    storage(id) {
      const member = members.get(`${folder}data/${id.key}`);
      if (member === undefined) {
        throw new OptError(
          "MISSING",
          source.path,
          `storage ${id.key.slice(0, 50)} is not there.`,
          "Use an intact copy.",
        );
      }
      return storagePart(member, id);
    },
  };
}

async function readLegacy(source: ByteSource, limits: PickleLimits): Promise<TorchPickle> {
  const cursor = new ByteCursor(source);
  if ((await readPickle(cursor, limits)) !== LEGACY_MAGIC) throw corrupt(source.path, "the magic number is missing");
  if ((await readPickle(cursor, limits)) !== LEGACY_PROTOCOL) throw corrupt(source.path, "the protocol is not 1001");
  const system = await readPickle(cursor, limits);
  if (system instanceof Map && system.get("little_endian") === false) throw bigEndian(source.path);
  // The storages follow in the order of their keys: an element count each, whose width only the tensors' ids tell.
  const widths = new Map<string, number>();
  const note = (persistent: PicklePersistent): void => {
    const { key, width } = storageId(persistent, source.path);
    widths.set(key, width);
  };
  const root = await readPickle(cursor, { ...limits, persistent: note });
  const keys = await readPickle(cursor, limits);
  if (!Array.isArray(keys)) throw corrupt(source.path, "the list of storages is missing");
  const storages = new Map<string, ByteSource>();
  for (const key of keys.map(String)) {
    const width = widths.get(key);
    if (width === undefined) throw corrupt(source.path, `storage ${key.slice(0, 50)} belongs to no tensor`);
    await cursor.need(8);
    const byteLength = cursor.length64() * width;
    storages.set(key, partOf(source, cursor.position, byteLength));
    cursor.skip(byteLength);
  }
  return {
    root,
    pickle: source,
    storage(id) {
      const stored = storages.get(id.key);
      if (stored === undefined) throw corrupt(source.path, `storage ${id.key.slice(0, 50)} is not there`);
      return storagePart(stored, id);
    },
  };
}

function storagePart(storage: ByteSource, { width, first, count }: StorageId): ByteSource {
  return partOf(storage, first * width, count * width);
}

function corrupt(path: string, problem: string): OptError {
  return new OptError("CORRUPT", path, `${problem}.`, "The file is damaged, or was not written by torch.save.");
}

function bigEndian(path: string): OptError {
  return new OptError("UNSUPPORTED", path, "the bytes are in big-endian order.", "Save it on a little-endian machine.");
}
