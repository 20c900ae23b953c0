/** `.metadata` of a PyTorch DCP folder: a pickle (protocol 4) of which chunk of which tensor lies where. */
import type { StoredDType } from "../../format/dtype";
import type { ReadLimits } from "../../format/source";
import { corrupt, missing, unsupported } from "../bytes/errors";
import type { ByteSource } from "../bytes/source";
import { readPickleOf } from "../python/pickle";
import { PickleCall, type PickleState, PickleTuple, type RecordKind } from "../python/pickle-objects";
import type { PythonTree } from "../python/tree";
import { counts, TORCH_PICKLE, torchDType } from "./tensors";

/** The classes of which `.metadata` is made, for who reads and who writes it. */
export const METADATA = "torch.distributed.checkpoint.metadata.";
export const STORAGE_INFO = "torch.distributed.checkpoint.filesystem._StorageInfo";
/** Where torch 2.0 to 2.2 had the properties of tensors. */
const OLDER = "torch.distributed._shard.sharded_tensor.metadata.";
const PARTS = [
  ...["Metadata", "MetadataIndex", "TensorStorageMetadata", "BytesStorageMetadata", "ChunkStorageMetadata"],
  ...["TensorProperties", "StorageMeta", "_MEM_FORMAT_ENCODING"],
];
const GLOBALS = new Set([
  ...TORCH_PICKLE.globals,
  ...PARTS.map((name) => `${METADATA}${name}`),
  ...["TensorProperties", "MEM_FORMAT_ENCODING"].map((name) => `${OLDER}${name}`),
  STORAGE_INFO,
  ...["pathlib", "pathlib._local"].flatMap((module) => [`${module}.PosixPath`, `${module}.WindowsPath`]),
]);

/** The file of a large run has hundreds of megabytes, and is read whole. */
const READ_AHEAD = 1 << 20;

/** Nested dicts deeper than this are no state dict: their items keep their flat names. */
const DEEPEST = 100;

export class DcpChunk {
  constructor(
    readonly offset: readonly number[],
    readonly size: readonly number[],
  ) {}
}

interface DcpTensor {
  /** Undefined for an element type that is not known here. */
  readonly dtype: StoredDType | undefined;
  readonly shape: readonly number[];
  readonly chunks: readonly DcpChunk[];
}

/** Where a chunk (or object) lies: a complete `torch.save` file inside of `file`, which still is to be checked. */
export class DcpLocation {
  constructor(
    readonly file: unknown,
    readonly begin: number,
    readonly byteLength: number,
  ) {}
}

class ChunkName {
  constructor(
    readonly name: string,
    readonly offset: readonly number[] | undefined,
  ) {}
}

export interface DcpMetadata {
  /** Tensors, and the names of plain objects with undefined. */
  readonly items: ReadonlyMap<string, DcpTensor | undefined>;
  /** Where an item stood before the nested dicts and lists were flattened: keys and indices from the outside in. */
  readonly paths: ReadonlyMap<string, readonly (string | number)[]>;
  /** All files that hold chunks; they still are to be checked. */
  readonly files: ReadonlySet<unknown>;
  /** The number of what is stored for a chunk. `guess`: its place among those of its tensor. @throws OptError MISSING */
  find(name: string, offset?: readonly number[], guess?: number): number;
  location(found: number): DcpLocation;
}

/** Reads `.metadata`. @throws OptError CORRUPT, REFUSED, UNSUPPORTED */
export async function readDcpMetadata(source: ByteSource, limits: ReadLimits = {}): Promise<DcpMetadata> {
  const where = source.path;
  const places = new Places();
  const takes = (key: unknown, location: unknown): boolean => {
    if (!(key instanceof ChunkName && location instanceof DcpLocation)) return false;
    places.add(key.name, key.offset, location);
    return true;
  };
  const pickle = { globals: GLOBALS, records: recordsOf(where), takes };
  const root = fields(await readPickleOf(source, pickle, { ...limits, ahead: READ_AHEAD }), "Metadata", where);
  const items = new Map<string, DcpTensor | undefined>();
  for (const [name, stored] of table(root.get("state_dict_metadata"), where)) {
    if (typeof name !== "string") throw damaged(where, "an item has no name");
    const isTensor = stored instanceof PickleCall && stored.callable === `${METADATA}TensorStorageMetadata`;
    items.set(name, isTensor ? readTensor(stored, where) : undefined);
  }
  if (table(root.get("storage_data"), where).size > 0) throw damaged(where, "a chunk has no name or no place");
  return {
    items,
    paths: readPaths(root.get("planner_data")),
    files: places.files,
    find(name, offset, guess = 0) {
      const row = places.find(name, offset, guess);
      if (row !== undefined) return row;
      const chunk = offset === undefined ? "" : ` at [${offset}]`;
      throw missing(where, `nothing is stored for ${name}${chunk}`, "The save did not end: use another.");
    },
    location: (row) => places.at(row),
  };
}

/** Where the chunks of all items lie, in columns: a large run has millions. */
class Places {
  readonly files = new Set<unknown>();
  readonly #items = new Map<string, number>();
  readonly #offsets: (Numbers | undefined)[] = [];
  readonly #files: unknown[] = [];
  /** Of each chunk where it begins, how long it is, and its item. */
  #numbers = new Float64Array(3 * 1024);
  #order: { readonly firsts: Uint32Array; readonly rows: Uint32Array } | undefined;
  readonly #byOffset = new Map<number, Map<string, number>>();

  add(name: string, offset: Numbers | undefined, { file, begin, byteLength }: DcpLocation): void {
    const row = this.#files.length;
    if (3 * row === this.#numbers.length) {
      const larger = new Float64Array(6 * row);
      larger.set(this.#numbers);
      this.#numbers = larger;
    }
    const item = this.#items.get(name) ?? this.#items.size;
    if (item === this.#items.size) this.#items.set(name, item);
    this.#numbers[3 * row] = begin;
    this.#numbers[3 * row + 1] = byteLength;
    this.#numbers[3 * row + 2] = item;
    if (file !== this.#files[row - 1]) this.files.add(file);
    this.#offsets.push(offset);
    this.#files.push(file);
  }

  /** The row of a chunk. `guess`: its place among those of its item. */
  find(name: string, offset: Numbers | undefined, guess: number): number | undefined {
    const item = this.#items.get(name);
    if (item === undefined) return undefined;
    this.#order ??= this.#byItem();
    const { firsts, rows } = this.#order;
    const [first, end] = [firsts[item]!, firsts[item + 1]!];
    const guessed = first + guess < end ? rows[first + guess]! : -1;
    if (guessed >= 0 && isSame(this.#offsets[guessed], offset)) return guessed;
    const own = this.#byOffset.get(item) ?? new Map<string, number>();
    if (own.size === 0) for (const row of rows.subarray(first, end)) own.set(String(this.#offsets[row]), row);
    this.#byOffset.set(item, own);
    return own.get(String(offset));
  }

  at(row: number): DcpLocation {
    return new DcpLocation(this.#files[row], this.#numbers[3 * row]!, this.#numbers[3 * row + 1]!);
  }

  /** The rows of each item, one item after the other, and where each begins. */
  #byItem() {
    const [count, items] = [this.#files.length, this.#items.size];
    const [firsts, rows] = [new Uint32Array(items + 1), new Uint32Array(count)];
    for (let row = 0; row < count; row++) firsts[this.#numbers[3 * row + 2]! + 1]!++;
    for (let item = 0; item < items; item++) firsts[item + 1]! += firsts[item]!;
    const next = firsts.slice();
    for (let row = 0; row < count; row++) rows[next[this.#numbers[3 * row + 2]!]!++] = row;
    return { firsts, rows };
  }
}

type Numbers = readonly number[];

function isSame(a: Numbers | undefined, b: Numbers | undefined): boolean {
  if (a === b || a === undefined || a.length !== b?.length) return a === b;
  for (let d = 0; d < a.length; d++) if (a[d] !== b[d]) return false;
  return true;
}

/** What is kept of the objects that a large run has millions of. Chunks that recur are kept once while there are few. */
function recordsOf(where: string): Map<string, RecordKind> {
  const chunks = new Map<Numbers, DcpChunk>();
  const chunk = (state: PickleState): DcpChunk => {
    const [offset, size] = [counts(state.get("offsets"), where), counts(state.get("sizes"), where)];
    const before = chunks.get(offset);
    if (before?.size === size) return before;
    const made = new DcpChunk(offset, size);
    if (chunks.size < MOST_KNOWN) chunks.set(offset, made);
    return made;
  };
  const index = (state: PickleState): ChunkName => {
    const [name, offset] = [state.get("fqn"), state.get("offset")];
    if (typeof name !== "string") throw damaged(where, "an item has no name");
    return new ChunkName(name, offset === null || offset === undefined ? undefined : counts(offset, where));
  };
  return new Map<string, RecordKind>([
    ["torch.Size", { isNumbers: true }],
    [`${METADATA}ChunkStorageMetadata`, { built: chunk }],
    [`${METADATA}MetadataIndex`, { built: index }],
    [STORAGE_INFO, { built: (state) => locationOf(state, where) }],
  ]);
}

const MOST_KNOWN = 100_000;

function readPaths(planner: unknown): Map<string, readonly (string | number)[]> {
  const paths = new Map<string, readonly (string | number)[]>();
  if (!(planner instanceof Map)) return paths;
  for (const [name, path] of planner) {
    const keys = itemsOf(path);
    const plain = keys.every((key): key is string | number => typeof key === "string" || typeof key === "number");
    if (typeof name === "string" && plain && keys.length > 0 && keys.length <= DEEPEST) paths.set(name, keys);
  }
  return paths;
}

function readTensor(value: unknown, where: string): DcpTensor {
  const stored = fields(value, "TensorStorageMetadata", where);
  const shape = counts(stored.get("size"), where);
  const properties = stored.get("properties");
  const state = properties instanceof PickleCall ? properties.state : undefined;
  // The properties pickle as a tuple whose first item is the element type; before that, as a dict.
  const type = state instanceof Map ? state.get("dtype") : itemsOf(state)[0];
  const dtype = torchDType(type);
  const chunks = itemsOf(stored.get("chunks"));
  if (!chunks.every((chunk) => chunk instanceof DcpChunk)) throw damaged(where, "a ChunkStorageMetadata is missing");
  return { dtype, shape, chunks };
}

function locationOf(info: PickleState, where: string): DcpLocation {
  const [begin, byteLength] = [info.get("offset"), info.get("length")];
  const transforms = info.get("transform_descriptors");
  if (transforms !== undefined && transforms !== null) {
    throw unsupported(where, "the chunks are compressed or encrypted", "Save without extensions.");
  }
  if (!Number.isSafeInteger(begin) || !Number.isSafeInteger(byteLength)) throw damaged(where, "a chunk has no place");
  return new DcpLocation(info.get("relative_path"), begin as number, byteLength as number);
}

function fields(value: unknown, name: string, where: string): Map<unknown, unknown> {
  if (value instanceof PickleCall && value.callable === `${METADATA}${name}` && value.state instanceof Map) {
    return value.state;
  }
  throw damaged(where, `a ${name} is missing`);
}

function table(value: unknown, where: string): Map<unknown, unknown> {
  if (value instanceof Map) return value;
  throw damaged(where, "a table is missing");
}

function itemsOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return value instanceof PickleTuple ? value.items : [];
}

const damaged = (where: string, problem: string) =>
  corrupt(where, problem, "The file is damaged, or of a version that is not known here.");

type Path = readonly (string | number)[];

interface Branch extends Map<string | number, Branch | PythonTree> {}

/** The tree whose leaves stand at their paths; an item without a path stands under its own name. */
export function nestedTree(leaves: ReadonlyMap<string, PythonTree>, paths: ReadonlyMap<string, Path>): PythonTree {
  const root: Branch = new Map();
  for (const [name, leaf] of leaves) {
    const path = paths.get(name) ?? guessedPath(name);
    const branch = path.slice(0, -1).reduce<Branch | undefined>((at, key) => at && branchAt(at, key), root);
    const last = path.at(-1)!;
    // Two items at one place, or one below another, cannot both be nested: this one stays flat.
    if (branch === undefined || branch.has(last)) root.set(name, leaf);
    else branch.set(last, leaf);
  }
  return treeOf(root);
}

function branchAt(branch: Branch, key: string | number): Branch | undefined {
  if (!branch.has(key)) branch.set(key, new Map());
  const known = branch.get(key);
  return known instanceof Map ? known : undefined;
}

/** Without paths (saved with `flatten_state_dict=False`) an optimizer's state is told by its name. */
function guessedPath(name: string): Path {
  const [, outer, parameter, state] = /^(.+?)\.state\.(.+)\.([^.]+)$/.exec(name) ?? [];
  if (state !== undefined) return [outer!, `state.${parameter}.${state}`];
  const [, holder, rest] = /^(.+?)\.(param_groups\..+\.[^.]+)$/.exec(name) ?? [];
  return rest === undefined ? [name] : [holder!, rest];
}

function treeOf(branch: Branch): PythonTree {
  const trees = [...branch].map(([key, member]): [string | number, PythonTree] => [
    key,
    member instanceof Map ? treeOf(member) : member,
  ]);
  if (trees.length > 0 && trees.every(([key]) => typeof key === "number")) {
    trees.sort(([a], [b]) => Number(a) - Number(b));
    return { list: trees.map(([, tree]) => tree) };
  }
  return { dict: trees };
}
