/** Numbers that systems keep as tensors of one element: counters, learning rates, betas. */
import { isNumeric, numberReader } from "../../format/numbers";
import type { SourceTensor } from "../../format/source";
import { readBox } from "../../format/verification";
import { itemsOf, type PythonTree, tensorOf } from "../python/tree";

/** The number that a tensor of one element holds, or undefined for any other tensor. */
export async function scalarOf(tensor: SourceTensor): Promise<number | undefined> {
  const { name, dtype, shape, boxes } = tensor;
  if (shape.some((length) => length !== 1) || !isNumeric(dtype)) return undefined;
  const [box] = boxes;
  return box && numberReader(dtype, await readBox(tensor, box), name)(0);
}

/** The tree with its tensors of one element as numbers; `read` gets their names. */
export async function inNumbers(
  tree: PythonTree,
  tensors: ReadonlyMap<string, SourceTensor>,
  read: Set<string>,
): Promise<PythonTree> {
  const items = itemsOf(tree);
  if (items !== undefined) {
    const list: PythonTree[] = [];
    for (const item of items) list.push(await inNumbers(item, tensors, read));
    return { list };
  }
  const name = tensorOf(tree);
  const tensor = name === undefined ? undefined : tensors.get(name);
  const number = tensor && (await scalarOf(tensor));
  if (number === undefined) return tree;
  read.add(name!);
  return Number.isFinite(number) ? number : { float: String(number) };
}
