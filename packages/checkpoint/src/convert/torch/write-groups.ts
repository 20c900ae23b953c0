/** Options of an optimizer's groups, and plain values, as PyTorch spells them. */
import { sameJson } from "../../format/json/plain";
import type { Json } from "../../format/source";
import { type PythonTree, plainOf } from "../../formats/python/tree";
import { ourOption, STRONG_WOLFE, torchOption } from "../../formats/torch/names";

/** What torch 2.13's optimizers keep in every group besides what ours have: a distributed load asks for each of them. */
const TORCH_OPTIONS: [string, PythonTree][] = [
  ["amsgrad", false],
  ["maximize", false],
  ["foreach", null],
  ["capturable", false],
  ["differentiable", false],
  ["fused", null],
  ["decoupled_weight_decay", false],
];

/** Options that torch counts by; it takes no float for them. */
const COUNTS = ["ns_steps", "max_iter", "max_eval", "history_size"];

/** A group's options under torch's names: as the file had them where they are the same, as ours where they changed. */
export function optionsOf(
  ours: { readonly [option: string]: Json },
  theirs: ReadonlyMap<string, PythonTree> | undefined,
): [PythonTree, PythonTree][] {
  const options = new Map<string, PythonTree>();
  for (const [name, value] of theirs ?? []) {
    const now = ours[ourOption(name)];
    const plain = plainOf(value);
    // What has no plain form was looked at before: tensors.
    options.set(name, now === undefined || plain === undefined || sameJson(now, plain) ? value : optionTree(name, now));
  }
  for (const [name, value] of Object.entries(ours)) {
    const theirName = torchOption(name);
    if (!options.has(theirName)) options.set(theirName, optionTree(theirName, value));
  }
  if (theirs === undefined) {
    for (const [name, value] of TORCH_OPTIONS) if (!options.has(name)) options.set(name, value);
  }
  return [...options];
}

/** Options are floats, and lists of them tuples. */
export function optionTree(name: string, value: Json): PythonTree {
  if (COUNTS.includes(name)) return treeOf(value);
  if (value === "strongWolfe") return STRONG_WOLFE;
  return Array.isArray(value) ? { tuple: value.map((item) => treeOf(item, true)) } : treeOf(value, true);
}

/** Plain JSON as Python has it; `floats`: integers are meant as floats. */
export function treeOf(value: Json, floats = false): PythonTree {
  if (typeof value === "number") {
    return !Number.isInteger(value) || (Number.isSafeInteger(value) && !floats) ? value : { float: String(value) };
  }
  if (Array.isArray(value)) return { list: value.map((item) => treeOf(item, floats)) };
  if (typeof value !== "object" || value === null) return value;
  return { dict: Object.entries(value).map(([key, item]) => [key, treeOf(item, floats)]) };
}
