/** A Python object as plain JSON, its tensors by name, so that it can be written again as it was. */
import type { Json } from "../../format/source";
import { PickleCall, PickleFloat, PickleGlobal, PickleSet, PickleTuple } from "./pickle-objects";

/** Integers and floats that are no integers stand for themselves; everything that JSON has no form for is an object of one member. */
export type PythonTree = null | boolean | number | string | PythonNode;

type PythonNode =
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

/** Calls that build plain values, and what they are called where they are written again. */
export const PLAIN_CALLS = new Map([
  ["torch.Size", "torch.Size"],
  ["torch.device", "torch.device"],
  ["builtins.complex", "__builtin__.complex"],
  ["__builtin__.complex", "__builtin__.complex"],
  ["_codecs.encode", "_codecs.encode"],
]);

const DEEPEST = 200;

/** A leaf that is no tensor and no container. */
export function leafOf(value: unknown, depth = 0): PythonTree {
  if (depth > DEEPEST) return { text: "..." };
  const leaves = (items: Iterable<unknown>): PythonTree[] => Array.from(items, (item) => leafOf(item, depth + 1));
  if (value === null || value === undefined || typeof value === "boolean" || typeof value === "string") {
    return value ?? null;
  }
  if (typeof value === "number") return Number.isSafeInteger(value) ? value : floatOf(value);
  if (value instanceof PickleFloat) return floatOf(value.value);
  if (typeof value === "bigint") return { int: value.toString() };
  if (value instanceof PickleGlobal) return { global: value.name };
  if (value instanceof PickleSet) return { set: leaves(value.items) };
  if (value instanceof PickleTuple) return { tuple: leaves(value.items) };
  if (Array.isArray(value)) return { list: leaves(value) };
  if (!(value instanceof PickleCall)) return { text: String(value) };
  const { callable, args, items } = value;
  const [first] = args;
  if (callable === "_codecs.encode" && typeof first === "string") return { call: callable, args: [first, "latin1"] };
  if (PLAIN_CALLS.has(callable) && callable !== "_codecs.encode") return { call: callable, args: leaves(args) };
  if (/\.(frozen)?set$/.test(callable)) return { set: leaves([...(Array.isArray(first) ? first : []), ...items]) };
  return { text: `${callable}(${leaves(args).map(printed).join(", ")})` };
}

function floatOf(value: number): PythonTree {
  if (Number.isFinite(value) && !Number.isInteger(value)) return value;
  const text = Object.is(value, -0) ? "-0" : String(value);
  return { float: text };
}

const NOT_FINITE: Record<string, string> = { NaN: "nan", Infinity: "inf", "-Infinity": "-inf" };

/** A tree without tensors as Python's repr() writes it. */
export function printed(tree: PythonTree): string {
  const list = (items: readonly PythonTree[]): string => items.map(printed).join(", ");
  if (tree === null) return "None";
  if (typeof tree === "boolean") return tree ? "True" : "False";
  if (typeof tree === "string") return `'${tree.replace(/[\\']/g, "\\$&")}'`;
  if (typeof tree === "number") return String(tree);
  if ("float" in tree) return NOT_FINITE[tree.float] ?? Number(tree.float).toFixed(1);
  if ("list" in tree) return `[${list(tree.list)}]`;
  if ("tuple" in tree) return tree.tuple.length === 1 ? `(${list(tree.tuple)},)` : `(${list(tree.tuple)})`;
  if ("set" in tree) return tree.set.length === 0 ? "set()" : `{${list(tree.set)}}`;
  if ("global" in tree) return tree.global;
  if (!("call" in tree)) return String(plainOf(tree));
  const [first = null, second] = tree.args;
  if (tree.call === "torch.Size") return `torch.Size(${printed(listed(first))})`;
  if (tree.call === "torch.device") {
    return `device(type=${printed(first)}${second === undefined ? "" : `, index=${printed(second)}`})`;
  }
  if (!tree.call.endsWith(".complex")) return `${tree.call}(${list(tree.args)})`;
  const [real, imaginary] = [first, second].map((part) => Number(isFloat(part) ? part.float : part)) as [
    number,
    number,
  ];
  return `(${real}${imaginary < 0 ? "" : "+"}${imaginary}j)`;
}

const isFloat = (tree: PythonTree | undefined): tree is { float: string } =>
  typeof tree === "object" && tree !== null && "float" in tree;

const listed = (tree: PythonTree): PythonTree => {
  const list = itemsOf(tree);
  return list === undefined ? tree : { list };
};

/** The members of a dict, or undefined for anything else. */
export function dictOf(tree: PythonTree | undefined): [PythonTree, PythonTree][] | undefined {
  return typeof tree === "object" && tree !== null && "dict" in tree ? tree.dict : undefined;
}

/** The items of a list or tuple, or undefined for anything else. */
export function itemsOf(tree: PythonTree | undefined): PythonTree[] | undefined {
  if (typeof tree !== "object" || tree === null) return undefined;
  return "list" in tree ? tree.list : "tuple" in tree ? tree.tuple : undefined;
}

/** What a dict, list or tuple holds, by key or index; undefined for anything else. */
export function membersOf(tree: PythonTree): [PythonTree, PythonTree][] | undefined {
  return dictOf(tree) ?? itemsOf(tree)?.map((item, i) => [i, item]);
}

/** The name of a tensor, or undefined for anything else. */
export function tensorOf(tree: PythonTree | undefined): string | undefined {
  return typeof tree === "object" && tree !== null && "tensor" in tree ? tree.tensor : undefined;
}

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

/** The tree that JSON from a file is, or undefined if it is invalid: nothing of it is trusted. */
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
