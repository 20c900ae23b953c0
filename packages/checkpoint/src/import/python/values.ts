/** Python objects that a pickle describes, as named tensors and plain values: nested dicts and lists become dotted names. */
import { OptError } from "@opt/core";
import type { Json } from "../../format/source";
import { type ByteSource, readBytes } from "../bytes/byte-source";
import { numpyScalar } from "./numpy-array";
import { PickleCall, PickleGlobal, PickleRange, PickleSet, PickleTuple } from "./pickle";

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
}

/**
 * Walks nested dicts, lists and tuples; `tensorOf` says which objects are tensors. Shared objects may occur often, so that the
 * number of nodes is bounded by `source`'s length. Throws CORRUPT for what is endless, DUPLICATE where two names fall together.
 */
export async function nameTree<T>(
  root: unknown,
  source: ByteSource,
  tensorOf: (value: unknown) => T | undefined,
): Promise<NamedTree<T>> {
  const tensors = new Map<string, T>();
  const values = new Map<string, Json>();
  let budget = source.byteLength + 1000;
  const visit = async (value: unknown, name: string, depth: number): Promise<void> => {
    if (--budget < 0 || depth > DEEPEST || name.length > LONGEST_NAME) throw endless(source.path);
    const children = childrenOf(value);
    if (children !== undefined) {
      for (const [key, child] of children) {
        await visit(child, name === "" ? keyText(key, source.path) : `${name}.${keyText(key, source.path)}`, depth + 1);
      }
      return;
    }
    if (tensors.has(name) || values.has(name)) {
      throw new OptError("DUPLICATE", source.path, `two entries are called ${JSON.stringify(name)}.`, "Rename one.");
    }
    const tensor = tensorOf(value);
    if (tensor !== undefined) tensors.set(name, tensor);
    else values.set(name, await plainValue(value, source));
  };
  await visit(root, "", 0);
  return { tensors, values: Object.fromEntries(values) };
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

function endless(path: string): OptError {
  return new OptError("CORRUPT", path, "the objects nest or repeat without end.", "The file is damaged, or hostile.");
}

function keyText(key: unknown, path: string): string {
  if (typeof key === "string") return key;
  if (typeof key === "number" || typeof key === "bigint" || typeof key === "boolean") return String(key);
  if (key instanceof PickleTuple) return python(key, 0);
  throw new OptError("UNSUPPORTED", path, "a dict has a key that is no name or number.", "Save names as keys.");
}

/** A value that is no tensor, as JSON; what JSON has no form for is written as Python prints it. */
async function plainValue(value: unknown, source: ByteSource): Promise<Json> {
  if (value === null || typeof value === "boolean" || typeof value === "string") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : python(value, 0);
  if (typeof value === "bigint") return value.toString();
  if (value instanceof PickleRange) return readText(value, source);
  const number = numpyScalar(value);
  return number ?? python(value, 0);
}

async function readText(range: PickleRange, source: ByteSource): Promise<string> {
  if (range.length > LONGEST_VALUE) {
    throw new OptError(
      "UNSUPPORTED",
      source.path,
      `a text of ${range.length} bytes is no plain value.`,
      "Save it apart.",
    );
  }
  return new TextDecoder().decode(await readBytes(source, range.offset, range.length));
}

/** As Python's repr() writes it. */
function python(value: unknown, depth: number): string {
  if (depth > DEEPEST) return "...";
  const list = (items: Iterable<unknown>): string => Array.from(items, (item) => python(item, depth + 1)).join(", ");
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number" && !Number.isFinite(value)) {
    return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  }
  if (typeof value === "string") return `'${value.replace(/[\\']/g, "\\$&")}'`;
  if (Array.isArray(value)) return `[${list(value)}]`;
  if (value instanceof PickleTuple)
    return value.items.length === 1 ? `(${list(value.items)},)` : `(${list(value.items)})`;
  if (value instanceof PickleSet) return value.items.length === 0 ? "set()" : `{${list(value.items)}}`;
  if (value instanceof PickleGlobal) return value.name;
  if (value instanceof PickleCall) return pythonCall(value, depth);
  return String(value);
}

function pythonCall({ callable, args, items }: PickleCall, depth: number): string {
  const [first, second] = args;
  const text = (value: unknown): string => python(value, depth + 1);
  switch (callable.slice(callable.lastIndexOf(".") + 1)) {
    case "set":
    case "frozenset": {
      const held = [...(Array.isArray(first) ? first : []), ...items];
      return held.length === 0 ? "set()" : `{${held.map(text).join(", ")}}`;
    }
    case "complex":
      return `(${text(first)}${Number(second) < 0 ? "" : "+"}${text(second)}j)`;
    case "Size":
      return `torch.Size(${text(first instanceof PickleTuple ? first.items : first)})`;
    case "device":
      return `device(type=${text(first)}${second === undefined ? "" : `, index=${text(second)}`})`;
    default:
      return `${callable}(${args.map(text).join(", ")})`;
  }
}
