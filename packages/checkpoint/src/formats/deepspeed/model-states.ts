/** `*_model_states.pt`: the module's tensors, and the names and shapes of the parameters that ranks hold parts of. */
import type { Json } from "../../format/source";
import { isCount } from "../../layout/counts";
import { corrupt, unsupported } from "../bytes/errors";
import type { ForeignTensor } from "../bytes/foreign-tensor";
import type { ByteSource } from "../bytes/source";
import { dictOf, itemsOf, membersOf, type PythonTree, plainOf } from "../python/tree";
import type { NamedTree } from "../python/values";
import { keyOf } from "../torch/optimizers";
import { readTorch } from "../torch/read";

const MODEL_FILE = /^(?:zero_pp_rank_\d+_)?mp_rank_(\d+)_model_states\.pt$/;
export const isModelFile = (name: string): boolean => MODEL_FILE.test(name);

export type StoredTree = NamedTree<ForeignTensor>;
export type Shapes = ReadonlyMap<string, readonly number[]>;
export type OpenNamed = (name: string) => Promise<ByteSource>;

export interface ModelStates {
  readonly file: string;
  /** By group: the parameters in the order in which they are laid out. */
  readonly groups: readonly Shapes[];
  /** Parameters that are not trained, where ranks hold parts of them. */
  readonly frozen: Shapes;
  /** Each rank's parts of those, by name. */
  readonly fragments: readonly ReadonlyMap<string, ForeignTensor>[];
  /** What the module holds whole: buffers, and weights that are not trained. */
  readonly tensors: ReadonlyMap<string, ForeignTensor>;
  /** Further names of tied weights. */
  readonly shared: ReadonlyMap<string, string>;
  readonly values: { readonly [key: string]: Json };
  readonly unreadable: ReadonlyMap<string, string>;
}

const BOOKKEEPING = /^(module|param_shapes|frozen_param_(shapes|fragments)|shared_params|buffer_names)\b/;

/** Reads the model's files of one step, the ranks in order. @throws OptError CORRUPT, UNSUPPORTED, REFUSED */
export async function readModelFile(open: OpenNamed, files: readonly string[]): Promise<ModelStates> {
  if (files.some((file) => Number(MODEL_FILE.exec(file)![1]) > 0)) {
    const advice = "Make a Universal checkpoint of it (ds_to_universal.py).";
    throw unsupported(files[0]!, "the model is split over ranks of a tensor parallel group", advice);
  }
  const [file] = files as [string, ...string[]];
  const source = await open(file);
  const { tensors, tree, values, unreadable } = await readTorch(source);
  const listed = treeAt(tree, "param_shapes");
  const groups = (itemsOf(listed) ?? (dictOf(listed) === undefined ? [] : [listed!])).map((one) =>
    shapesOf(one, source.path),
  );
  const frozen = shapesOf(treeAt(tree, "frozen_param_shapes"), source.path);
  const fragmentsOf = (all: StoredTree["tensors"]) => under(all, "frozen_param_fragments.");
  const fragments = [fragmentsOf(tensors)];
  // Ranks hold parts of frozen parameters in stage 3 only, where each has a file.
  if (frozen.size > 0)
    for (const other of files.slice(1)) fragments.push(fragmentsOf((await readTorch(await open(other))).tensors));
  const parted = new Set([...groups.flatMap((group) => [...group.keys()]), ...frozen.keys()]);
  const shared = new Map(dictOf(treeAt(tree, "shared_params"))?.map(([name, own]) => [keyOf(name), keyOf(own)]));
  const whole = [...under(tensors, "module.")].filter(([name]) => !parted.has(name) && !shared.has(name));
  const kept = Object.entries(values).filter(([name]) => !BOOKKEEPING.test(name));
  return {
    ...{ file, groups, frozen, fragments, shared, unreadable },
    ...{ tensors: new Map(whole), values: Object.fromEntries(kept) },
  };
}

/** What stands at the end of a path of keys. */
export function treeAt(tree: PythonTree | undefined, ...path: readonly string[]): PythonTree | undefined {
  return path.reduce((at, key) => at && membersOf(at)?.find(([name]) => keyOf(name) === key)?.[1], tree);
}

function under(tensors: ReadonlyMap<string, ForeignTensor>, prefix: string): Map<string, ForeignTensor> {
  const held = [...tensors].filter(([name]) => name.startsWith(prefix));
  return new Map(held.map(([name, tensor]) => [name.slice(prefix.length), tensor]));
}

/** A dict of `torch.Size` by name. @throws OptError CORRUPT */
function shapesOf(tree: PythonTree | undefined, where: string): Shapes {
  const shapes = new Map<string, readonly number[]>();
  for (const [name, size] of dictOf(tree) ?? []) {
    const call = typeof size === "object" && size !== null && "call" in size ? size.args[0] : size;
    const shape = plainOf(call ?? null);
    if (!Array.isArray(shape) || !shape.every(isCount))
      throw corrupt(where, `${JSON.stringify(keyOf(name))} has no shape`);
    shapes.set(keyOf(name), shape);
  }
  return shapes;
}
