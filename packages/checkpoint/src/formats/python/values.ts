/** Python objects that a pickle describes, as named tensors and plain values: nested dicts and lists become dotted names. */
import { OptError } from "@opt/core";
import { type Json, mostTensors } from "../../format/source";
import { corrupt, duplicate, unsupported } from "../bytes/errors";
import { type ByteSource, readBytes } from "../bytes/source";
import { numpyScalar } from "./numpy-array";
import { PickleCall, PickleFloat, PickleRange, PickleTuple } from "./pickle-objects";
import { leafOf, type PythonTree, plainOf, printed } from "./tree";

/** Globals of Python's own plain types, as Python 2 and 3 spell them. */
export const PLAIN_GLOBALS = [
  "collections.OrderedDict",
  "collections.defaultdict",
  "collections.Counter",
  "_codecs.encode",
  ...["__builtin__", "builtins"].flatMap((module) =>
    ["set", "frozenset", "complex", "dict", "list", "int", "float", "bytearray"].map((name) => `${module}.${name}`),
  ),
];

const LONGEST_NAME = 4096;
const DEEPEST = 100;
const LONGEST_VALUE = 16 * 1024 * 1024;

export interface NamedTree<T> {
  readonly tensors: Map<string, T>;
  readonly values: Record<string, Json>;
  /** Why a tensor cannot be read, by name: an element type or a storage that we have no form for. */
  readonly unreadable: Map<string, string>;
  readonly tree: PythonTree;
}

/** Objects that one tensor takes at most in what is walked: its states, their counters, its place in a group. */
const NODES_PER_TENSOR = 4;

/**
 * Names the tensors and values in nested dicts, lists and tuples, `prefix` before each.
 *
 * @throws OptError CORRUPT for what is endless, DUPLICATE if two names are equal
 */
export async function nameTree<T>(
  root: unknown,
  source: ByteSource,
  tensorOf: (value: unknown) => T | undefined,
  prefix = "",
): Promise<NamedTree<T>> {
  const tensors = new Map<string, T>();
  const values = new Map<string, Json>();
  const unreadable = new Map<string, string>();
  let budget = Math.min(source.byteLength + 1000, NODES_PER_TENSOR * mostTensors(source.byteLength));
  const readLeaf = async (value: unknown, name: string): Promise<PythonTree> => {
    if (tensors.has(name) || values.has(name) || unreadable.has(name))
      throw duplicate(source.path, `two entries are called ${JSON.stringify(name)}`);
    try {
      const tensor = tensorOf(value);
      if (tensor !== undefined) {
        tensors.set(name, tensor);
        return { tensor: name };
      }
    } catch (error) {
      if (!(error instanceof OptError && error.code === "UNSUPPORTED")) throw error;
      unreadable.set(name, error.message);
      return { tensor: name };
    }
    const leaf = value instanceof PickleRange ? await readText(value, source) : (numpyScalar(value) ?? leafOf(value));
    const plain = plainOf(leaf);
    values.set(name, plain === undefined ? printed(leaf) : plain);
    return leaf;
  };
  const visit = async (value: unknown, name: string, depth: number): Promise<PythonTree> => {
    if (--budget < 0 || depth > DEEPEST || name.length > LONGEST_NAME)
      throw corrupt(source.path, "the objects nest or repeat without end", "The file is damaged, or hostile.");
    const children = childrenOf(value);
    if (children === undefined) return readLeaf(value, name);
    const inside = (text: string): string => (name === "" ? text : `${name}.${text}`);
    if (Array.isArray(value) || value instanceof PickleTuple) {
      const items: PythonTree[] = [];
      for (const [i, child] of children) items.push(await visit(child, inside(String(i)), depth + 1));
      return Array.isArray(value) ? { list: items } : { tuple: items };
    }
    const dict: [PythonTree, PythonTree][] = [];
    for (const [key, child] of children)
      dict.push([leafOf(key), await visit(child, inside(keyText(key, source.path)), depth + 1)]);
    return value instanceof PickleCall ? { dict, ordered: true } : { dict };
  };
  const tree = await visit(root, prefix, 0);
  return { tensors, values: Object.fromEntries(values), unreadable, tree };
}

/** What a container holds, by key; undefined for anything else. */
export function childrenOf(value: unknown): Iterable<[unknown, unknown]> | undefined {
  if (value instanceof Map) return value;
  if (Array.isArray(value)) return value.entries();
  if (value instanceof PickleTuple) return value.items.entries();
  if (!(value instanceof PickleCall)) return undefined;
  if (!["collections.OrderedDict", "collections.defaultdict", "collections.Counter"].includes(value.callable)) {
    return undefined;
  }
  // Counter(dict) and Python 2's OrderedDict([[key, value], ...]) carry their items as arguments.
  const given = value.args.find((arg) => arg instanceof Map || Array.isArray(arg));
  const items: [unknown, unknown][] = given instanceof Map ? [...given] : ((given ?? []) as unknown[]).flatMap(pairOf);
  return [...items, ...value.entries];
}

function pairOf(item: unknown): [unknown, unknown][] {
  const pair = item instanceof PickleTuple ? item.items : item;
  return Array.isArray(pair) && pair.length === 2 ? [[pair[0], pair[1]]] : [];
}

function keyText(key: unknown, path: string): string {
  if (typeof key === "string") return key;
  if (typeof key === "number" || typeof key === "bigint" || typeof key === "boolean") return String(key);
  if (key instanceof PickleFloat || key instanceof PickleTuple) return printed(leafOf(key));
  throw unsupported(path, "a dict has a key that is no name or number", "Save names as keys.");
}

async function readText(range: PickleRange, source: ByteSource): Promise<string> {
  if (range.length > LONGEST_VALUE) {
    throw unsupported(source.path, `a text of ${range.length} bytes is no plain value`, "Save it apart.");
  }
  return new TextDecoder().decode(await readBytes(source, range.offset, range.length));
}
