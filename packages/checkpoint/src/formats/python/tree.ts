/**
 * A Python object as plain JSON, its tensors by name: what flat names and values lose (lists and tuples, integer keys, empty dicts,
 * `1.0` and `1`), so that it can be written again as it was.
 */
import type { Json } from "../../format/source";
import { PickleCall, PickleFloat, PickleGlobal, PickleSet, PickleTuple } from "./pickle-objects";

/** Integers and floats that are no integers stand for themselves; everything that JSON has no form for is an object of one member. */
export type PythonTree = null | boolean | number | string | PythonNode;

export type PythonNode =
  | { dict: [PythonTree, PythonTree][]; ordered?: true }
  | { list: PythonTree[] }
  | { tuple: PythonTree[] }
  | { set: PythonTree[] }
  | { tensor: string }
  /** A float that is an integer, or none that JSON knows: its text. */
  | { float: string }
  /** An integer beyond 2^53: its digits. */
  | { int: string }
  | { global: string }
  | { call: string; args: PythonTree[] }
  /** Anything else, as Python prints it. */
  | { text: string };

/** Calls that build plain values, and that are written again. */
const PLAIN_CALLS = ["torch.Size", "torch.device", "builtins.complex", "__builtin__.complex"];

/** A leaf that is no tensor and no container; `printed` is what Python prints for it. */
export function leafOf(value: unknown, printed: Json): PythonTree {
  if (value === null || value === undefined || typeof value === "boolean" || typeof value === "string") {
    return value ?? null;
  }
  if (typeof value === "number") return Number.isSafeInteger(value) ? value : floatOf(value);
  if (value instanceof PickleFloat) return floatOf(value.value);
  if (typeof value === "bigint") return { int: value.toString() };
  if (value instanceof PickleGlobal) return { global: value.name };
  if (value instanceof PickleSet) return { set: value.items.map((item) => leafOf(item, String(item))) };
  if (value instanceof PickleTuple) return { tuple: value.items.map((item) => leafOf(item, String(item))) };
  if (value instanceof PickleCall && PLAIN_CALLS.includes(value.callable)) {
    return { call: value.callable, args: value.args.map((item) => leafOf(item, String(item))) };
  }
  if (value instanceof PickleCall && value.callable === "_codecs.encode" && typeof value.args[0] === "string") {
    return { call: value.callable, args: [value.args[0], "latin1"] };
  }
  if (value instanceof PickleCall && /\.(frozen)?set$/.test(value.callable)) {
    const held = [...(Array.isArray(value.args[0]) ? value.args[0] : []), ...value.items];
    return { set: held.map((item) => leafOf(item, String(item))) };
  }
  return typeof printed === "string" ? { text: printed } : (printed as PythonTree);
}

function floatOf(value: number): PythonTree {
  if (Number.isFinite(value) && !Number.isInteger(value)) return value;
  const text = Object.is(value, -0) ? "-0" : String(value);
  return { float: text };
}

/** The members of a dict, or undefined for anything else. */
export function dictOf(tree: PythonTree | undefined): [PythonTree, PythonTree][] | undefined {
  return typeof tree === "object" && tree !== null && "dict" in tree ? tree.dict : undefined;
}

/** What a dict holds under a name. */
export function memberOf(tree: PythonTree | undefined, name: string): PythonTree | undefined {
  return dictOf(tree)?.find(([key]) => key === name)?.[1];
}

/** The items of a list or tuple, or undefined for anything else. */
export function itemsOf(tree: PythonTree | undefined): PythonTree[] | undefined {
  if (typeof tree !== "object" || tree === null) return undefined;
  return "list" in tree ? tree.list : "tuple" in tree ? tree.tuple : undefined;
}

/** The name of a tensor, or undefined for anything else. */
export function tensorOf(tree: PythonTree | undefined): string | undefined {
  return typeof tree === "object" && tree !== null && "tensor" in tree ? tree.tensor : undefined;
}

/** As Python prints them. */
const NOT_FINITE: Record<string, string> = { NaN: "nan", Infinity: "inf", "-Infinity": "-inf" };

/** The plain value of a tree without tensors: dicts become objects, tuples arrays. Undefined where JSON has none. */
export function plainOf(tree: PythonTree): Json | undefined {
  if (typeof tree !== "object" || tree === null) return tree;
  if ("float" in tree) return Number.isFinite(Number(tree.float)) ? Number(tree.float) : NOT_FINITE[tree.float];
  if ("int" in tree) return tree.int;
  if ("text" in tree) return tree.text;
  const items = itemsOf(tree);
  if (items !== undefined) {
    const plain = items.map(plainOf);
    return plain.includes(undefined) ? undefined : (plain as Json[]);
  }
  const members = dictOf(tree)?.map(([key, value]) => [String(plainOf(key)), plainOf(value)] as const);
  if (members === undefined || members.some(([, value]) => value === undefined)) return undefined;
  return Object.fromEntries(members) as Json;
}

/** The same tree with every tensor's name replaced; a tensor that gets undefined is left out of what holds it. */
export function renameTensors(tree: PythonTree, nameOf: (name: string) => string | undefined): PythonTree | undefined {
  if (typeof tree !== "object" || tree === null) return tree;
  const inside = (items: PythonTree[]): PythonTree[] =>
    items.flatMap((item) => {
      const renamed = renameTensors(item, nameOf);
      return renamed === undefined ? [] : [renamed];
    });
  if ("tensor" in tree) {
    const name = nameOf(tree.tensor);
    return name === undefined ? undefined : { tensor: name };
  }
  if ("list" in tree) return { list: inside(tree.list) };
  if ("tuple" in tree) return { tuple: inside(tree.tuple) };
  if (!("dict" in tree)) return tree;
  const dict = tree.dict.flatMap(([key, value]): [PythonTree, PythonTree][] => {
    const renamed = renameTensors(value, nameOf);
    if (renamed === undefined) return [];
    // What is called by its own name goes on being so.
    return [[key === tensorOf(value) ? tensorOf(renamed)! : key, renamed]];
  });
  return { ...tree, dict };
}

const DEEPEST = 200;

/** The tree that JSON from a file is, or undefined where it is none: nothing of it is trusted. */
export function treeFrom(json: unknown, depth = 0): PythonTree | undefined {
  if (json === null || typeof json === "boolean" || typeof json === "number" || typeof json === "string") return json;
  if (typeof json !== "object" || Array.isArray(json) || depth > DEEPEST) return undefined;
  const node = json as Record<string, unknown>;
  const all = (items: unknown): PythonTree[] | undefined => {
    const trees = Array.isArray(items) ? items.map((item) => treeFrom(item, depth + 1)) : [undefined];
    return trees.includes(undefined) ? undefined : (trees as PythonTree[]);
  };
  if (Array.isArray(node.dict)) {
    const pairs = node.dict.map(all);
    const whole = pairs.every((pair): pair is [PythonTree, PythonTree] => pair?.length === 2);
    return whole ? { dict: pairs, ...(node.ordered === true ? { ordered: true as const } : {}) } : undefined;
  }
  for (const kind of ["list", "tuple", "set"] as const) {
    const items = all(node[kind] ?? null);
    if (items !== undefined) return { [kind]: items } as PythonTree;
  }
  const args = all(node.args ?? null);
  if (typeof node.call === "string" && args !== undefined) return { call: node.call, args };
  if (typeof node.int === "string" && !/^-?\d+$/.test(node.int)) return undefined;
  for (const kind of ["tensor", "float", "int", "global", "text"] as const) {
    if (typeof node[kind] === "string") return { [kind]: node[kind] } as PythonTree;
  }
  return undefined;
}
