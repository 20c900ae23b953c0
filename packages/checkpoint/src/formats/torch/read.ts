/** PyTorch `.pt` and `.pth` files: a zip of a pickle and its storages, or (before 1.6) pickles followed by raw storages. */
import type { Json, ReadLimits } from "../../format/source";
import { isCount } from "../../layout/counts";
import { ByteCursor } from "../bytes/cursor";
import { corrupt, missing, unsupported } from "../bytes/errors";
import { type ForeignTensor, wholeTensors } from "../bytes/foreign-tensor";
import { formatReader } from "../bytes/reader";
import { type ByteSource, partOf, readBytes } from "../bytes/source";
import { type PickleLimits, readPickle, readPickleOf } from "../python/pickle";
import { type PicklePersistent, PickleTuple } from "../python/pickle-objects";
import { type NamedTree, type NameLimits, nameTree } from "../python/values";
import { indexReader } from "../safetensors/read-index";
import { openZip } from "../zip/read";
import { type StorageId, storageId, TORCH_PICKLE, torchTensor } from "./tensors";

const LEGACY_MAGIC = 0x1950a86a20f9469cfc6cn;
const LEGACY_PROTOCOL = 1001;
const LONGEST_PICKLE = 1 << 30;

export const torchFileReader = formatReader("PyTorch", async ({ path, file, options }) => {
  const { tensors, values, unreadable, skipped, tree } = await readTorch(await file(), options);
  const named = [...tensors].map(([key, tensor]) => [key || "tensor", tensor] as const);
  const structure = tree as Json;
  return { tensors: wholeTensors(named, path), step: stepOf(values), values, unreadable, skipped, structure };
});

/** `pytorch_model.bin.index.json` and its files. */
export const binIndexReader = indexReader("sharded PyTorch", ".bin.index.json", (source) => readTorch(source));

/** The step that a training loop kept: `global_step` (Lightning, Transformers) or `step`. */
export function stepOf(values: { readonly [key: string]: Json }): number | undefined {
  return [values.global_step, values.step].find(isCount);
}

/** The named tensors and values of what `torch.save` wrote, zip or legacy. @throws OptError CORRUPT, REFUSED, UNSUPPORTED, DUPLICATE */
export async function readTorch(source: ByteSource, limits: NameLimits = {}): Promise<NamedTree<ForeignTensor>> {
  const head = await readBytes(source, 0, Math.min(4, source.byteLength));
  const isZip = head[0] === 0x50;
  const read = isZip ? readArchived(source, await openZip(source), limits) : readLegacy(source);
  return namedIn(source, await read, limits);
}

/** The tensors and values of a pickle. @throws OptError as `readTorch` */
export function namedIn(
  source: ByteSource,
  { root, pickle, storages }: TorchPickle,
  limits: NameLimits = {},
): Promise<NamedTree<ForeignTensor>> {
  const storage = ({ key, width, first, count }: StorageId): ByteSource => {
    const stored = storages(key);
    if (stored === undefined) throw missing(source.path, `storage ${key.slice(0, 50)} is not there`);
    return partOf(stored, first * width, count * width);
  };
  return nameTree(root, pickle, (value) => torchTensor(value, pickle, storage), limits);
}

export interface TorchPickle {
  readonly root: unknown;
  readonly pickle: ByteSource;
  storages(key: string): ByteSource | undefined;
}

/** A pickle of an archive (TorchScript has several), and the storages in the folder of its name. */
export async function readArchived(
  { path }: ByteSource,
  members: ReadonlyMap<string, ByteSource>,
  limits: ReadLimits = {},
  kind = "data",
  known: PickleLimits = TORCH_PICKLE,
): Promise<TorchPickle> {
  const name = [...members.keys()].find((member) => member.split("/").slice(1).join("/") === `${kind}.pkl`) ?? "";
  const pickle = members.get(name);
  if (pickle === undefined) throw damaged(path, `the archive has no ${kind}.pkl`);
  const folder = name.slice(0, -`${kind}.pkl`.length);
  const order = members.get(`${folder}byteorder`);
  const said = order && new TextDecoder().decode(await readBytes(order, 0, Math.min(16, order.byteLength)));
  if (said !== undefined && said !== "little") throw bigEndian(path);
  if (pickle.byteLength > LONGEST_PICKLE) throw damaged(pickle.path, "the pickle is longer than 1 GiB");
  const root = await readPickleOf(pickle, known, limits);
  return { root, pickle, storages: (key) => members.get(`${folder}${kind}/${key}`) };
}

async function readLegacy(source: ByteSource): Promise<TorchPickle> {
  const { path } = source;
  const cursor = new ByteCursor(source);
  if ((await readPickle(cursor, TORCH_PICKLE)) !== LEGACY_MAGIC) throw damaged(path, "the magic number is missing");
  if ((await readPickle(cursor, TORCH_PICKLE)) !== LEGACY_PROTOCOL) throw damaged(path, "the protocol is not 1001");
  const system = await readPickle(cursor, TORCH_PICKLE);
  if (system instanceof Map && system.get("little_endian") === false) throw bigEndian(path);
  // The storages follow in the order of their keys: an element count each, whose width only the tensors' ids tell.
  const widths = new Map<string, number>();
  const note = (persistent: PicklePersistent): void => {
    if (isModuleClass(persistent)) return;
    const { key, width } = storageId(persistent, path);
    widths.set(key, width);
  };
  const root = await readPickle(cursor, { ...TORCH_PICKLE, persistent: note });
  const keys = await readPickle(cursor, TORCH_PICKLE);
  if (!Array.isArray(keys)) throw damaged(path, "the list of storages is missing");
  const storages = new Map<string, ByteSource>();
  for (const key of keys.map(String)) {
    const width = widths.get(key);
    if (width === undefined) throw damaged(path, `storage ${key.slice(0, 50)} belongs to no tensor`);
    await cursor.need(8);
    const byteLength = cursor.length64() * width;
    storages.set(key, partOf(source, cursor.position, byteLength));
    cursor.skip(byteLength);
  }
  return { root, pickle: source, storages: (key) => storages.get(key) };
}

const isModuleClass = ({ id }: PicklePersistent): boolean => id instanceof PickleTuple && id.items[0] === "module";

const damaged = (path: string, problem: string) =>
  corrupt(path, problem, "The file is damaged, or was not written by torch.save.");

const bigEndian = (path: string) =>
  unsupported(path, "the bytes are in big-endian order", "Save it on a little-endian machine.");
