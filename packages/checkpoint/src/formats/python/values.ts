/** Python objects that a pickle describes, as named tensors and plain values: nested dicts and lists become dotted names. */
import { OptError } from "@opt/core";
import { type Json, mostTensors, type ReadLimits, type Skipped } from "../../format/source";
import { corrupt, duplicate } from "../bytes/errors";
import { type ByteSource, readBytes } from "../bytes/source";
import { childrenOf } from "./containers";
import { foreignEntries, foreignName, moduleEntries } from "./foreign";
import { notNumbers, numpyScalar } from "./numpy-array";
import { PickleCall, PickleRange, PickleTuple } from "./pickle-objects";
import { leafOf, type PythonTree, plainOf, printed } from "./tree";

/** Globals of Python's own plain types, as Python 2 and 3 spell them. */
export const PLAIN_GLOBALS = [
  "collections.OrderedDict",
  "collections.defaultdict",
  "collections.Counter",
  "_codecs.encode",
  ...["__builtin__", "builtins"].flatMap((module) =>
    ["set", "frozenset", "complex", "dict", "list", "int", "float", "bytes", "bytearray"].map(
      (name) => `${module}.${name}`,
    ),
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
  readonly skipped: Skipped[];
  readonly tree: PythonTree;
}

/** Objects that one tensor takes at most in what is walked: its states, their counters, its place in a group. */
const NODES_PER_TENSOR = 4;

/** `prefix` stands before each name. */
export interface NameLimits extends ReadLimits {
  readonly prefix?: string;
}

/** Lists of numbers may be long, and a value takes one byte at least. */
const MOST_VALUES = 4_000_000;

/**
 * Names the tensors and values in nested dicts, lists and tuples, `prefix` before each.
 *
 * @throws OptError CORRUPT for what is endless, DUPLICATE if two names are equal
 */
export async function nameTree<T>(
  root: unknown,
  source: ByteSource,
  tensorOf: (value: unknown) => T | undefined,
  { maxObjects, prefix = "" }: NameLimits = {},
): Promise<NamedTree<T>> {
  const tensors = new Map<string, T>();
  const values = new Map<string, Json>();
  const unreadable = new Map<string, string>();
  const skipped: Skipped[] = [];
  const walked = new Set<unknown>();
  /** The containers around: what holds itself is printed as Python does. */
  const open = new Set<unknown>();
  const { byteLength } = source;
  const most = maxObjects ?? Math.max(NODES_PER_TENSOR * mostTensors(byteLength), MOST_VALUES);
  let budget = Math.min(byteLength + 1000, most);
  const skip = (name: string, what: string): PythonTree => {
    skipped.push({ name, what });
    return { text: what };
  };
  const readLeaf = async (value: unknown, name: string): Promise<PythonTree> => {
    if (tensors.has(name) || values.has(name) || unreadable.has(name))
      throw duplicate(source.path, `two entries are called ${JSON.stringify(name)}`);
    const what = foreignName(value) ?? notNumbers(value);
    if (what !== undefined) return skip(name, what);
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
    if (value instanceof PickleRange && value.length > LONGEST_VALUE)
      return skip(name, `a ${value.kind === "text" ? "text" : "bytes object"} of ${value.length} bytes`);
    const leaf = value instanceof PickleRange ? await readText(value, source) : (numpyScalar(value) ?? leafOf(value));
    const plain = plainOf(leaf);
    values.set(name, plain === undefined ? printed(leaf) : plain);
    return leaf;
  };
  const tooMany = () => {
    const problem = most > byteLength ? "the objects nest or repeat without end" : `it holds more than ${most} objects`;
    return corrupt(source.path, problem, "If you trust the file, raise maxObjects.");
  };
  const visit = async (value: unknown, name: string, depth: number): Promise<PythonTree> => {
    if (--budget < 0 || depth > DEEPEST || name.length > LONGEST_NAME) throw tooMany();
    const isForeign = value instanceof PickleCall && value.isForeign;
    if (isForeign) skip(name, value.callable);
    const parts = isForeign ? moduleEntries(value) : undefined;
    // Objects refer to one another in circles; modules do not, and one that is used twice has both names.
    if (isForeign && !parts && walked.has(value)) return { text: value.callable };
    walked.add(value);
    if (open.has(value)) return { text: "..." };
    const children = parts ?? (isForeign ? foreignEntries(value) : childrenOf(value));
    if (children === undefined) return readLeaf(value, name);
    open.add(value);
    const tree = await container(value, children, name, depth);
    open.delete(value);
    return tree;
  };
  const container = async (
    value: unknown,
    children: Iterable<[unknown, unknown]> | Iterable<readonly [unknown, unknown]>,
    name: string,
    depth: number,
  ): Promise<PythonTree> => {
    const isForeign = value instanceof PickleCall && value.isForeign;
    const inside = (text: string): string => (name === "" ? text : `${name}.${text}`);
    if (Array.isArray(value) || value instanceof PickleTuple) {
      if ((Array.isArray(value) ? value : value.items).length > budget) throw tooMany();
      const items: PythonTree[] = [];
      for (const [i, child] of children) items.push(await visit(child, inside(String(i)), depth + 1));
      return Array.isArray(value) ? { list: items } : { tuple: items };
    }
    const dict: [PythonTree, PythonTree][] = [];
    for (const [key, child] of children) {
      const called = inside(keyText(key, dict.length));
      if (key instanceof PickleCall && key.isForeign) skip(called, `the key of it is ${key.callable}`);
      dict.push([leafOf(key), await visit(child, called, depth + 1)]);
    }
    if (isForeign && dict.length === 0) return { text: value.callable };
    return value instanceof PickleCall ? { dict, ordered: true } : { dict };
  };
  const tree = await visit(root, prefix, 0);
  return { tensors, values: Object.fromEntries(values), unreadable, skipped, tree };
}

/** A key as it is printed; an object that holds others is called by its place. */
function keyText(key: unknown, place: number): string {
  if (typeof key === "string") return key;
  const isObject = key instanceof PickleCall && key.args.some((arg) => arg instanceof PickleCall);
  return isObject ? `#${place}` : printed(leafOf(key));
}

async function readText(range: PickleRange, source: ByteSource): Promise<string> {
  return new TextDecoder().decode(await readBytes(source, range.offset, range.length));
}
