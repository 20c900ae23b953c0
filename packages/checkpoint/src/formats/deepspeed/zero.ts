/**
 * ZeRO's ranks: in stages 1 and 2 a group's parameters are laid end to end and cut into one range for each rank; in stage 3 every
 * parameter is. Source: the rules of DeepSpeed's `zero_to_fp32.py`.
 */
import type { Json, SourceTensor } from "../../format/source";
import { elementCount } from "../../layout/box";
import { isCount } from "../../layout/counts";
import { badState, corrupt, missing, unsupported } from "../bytes/errors";
import { type ForeignTensor, scalarTensor, wholeTensor } from "../bytes/foreign-tensor";
import { isObject } from "../bytes/json";
import { scalarOf } from "../names/scalars";
import { type PythonTree, plainOf } from "../python/tree";
import { ourOption } from "../torch/names";
import { readTorch } from "../torch/read";
import { type ModelStates, type OpenNamed, type Shapes, type StoredTree, treeAt } from "./model-states";
import { boxesIn, laidOut, type Piece } from "./pieces";

export const OPTIMIZER_FILE = /^(?:bf16_)?zero_pp_rank_(\d+)_mp_rank_00_optim_states\.pt$/;
const WEIGHTS = /^optimizer_state_dict\.(single_partition_of_fp32_groups|fp32_flat_groups)\.(\d+)$/;
const STATE = /^optimizer_state_dict\.(?:base_optimizer_state|optimizer_state_dict)\.(?:state\.)?(\d+)\.(\w+)$/;
const OPTIMIZERS = ["base_optimizer_state", "optimizer_state_dict"];

interface Rank {
  readonly file: string;
  readonly isStage3: boolean;
  readonly read: StoredTree;
  /** What it holds of each group, by state; the weights' is "". */
  readonly flat: ReadonlyMap<string, ReadonlyMap<number, ForeignTensor>>;
}

/** All that the ranks hold together, in float32. @throws OptError MISSING for fewer ranks than there were, CORRUPT, BAD_STATE, UNSUPPORTED */
export async function readZero(open: OpenNamed, files: readonly string[], model: ModelStates, folder: string) {
  const ranks: Rank[] = [];
  for (const file of files) ranks.push(rankOf(file, await readTorch(await open(file))));
  const [first] = ranks;
  if (first === undefined) throw missing(folder, "the files *_optim_states.pt of the ranks are not there");
  const counts = [plainOf(treeAt(first.read.tree, "optimizer_state_dict", "partition_count") ?? null)]
    .flat()
    .map(Number);
  if (new Set(counts).size > 1) throw unsupported(folder, "its groups are split over different numbers of ranks");
  const absent = files.findIndex((file, i) => Number(OPTIMIZER_FILE.exec(file)![1]) !== i);
  if (counts[0] !== files.length || absent >= 0) {
    throw missing(folder, `the files of ${counts[0]} ranks are needed, got ${files.length}`);
  }
  const tensors: SourceTensor[] = [];
  const { isStage3 } = first;
  for (const [state, groups] of first.flat) {
    const held = (group: number) => ranks.map((rank) => pieceOf(rank, state, group));
    if (isStage3)
      tensors.push(...ofParameters(model, [...groups.keys()].sort((a, b) => a - b).map(held), state, folder));
    else
      for (const g of groups.keys())
        tensors.push(...ofGroup(model.groups[g] ?? new Map(), laidOut(held(g)), state, folder));
  }
  const names = model.groups.map((group) => [...group.keys()]);
  for (const [g, group] of (isStage3 ? [names.flat()] : names).entries())
    tensors.push(...(await stepsOf(first, g, group)));
  const listed = OPTIMIZERS.map((owner) => treeAt(first.read.tree, "optimizer_state_dict", owner, "param_groups"));
  return { tensors, values: optionsOf(listed.find(Boolean), names) };
}

function rankOf(file: string, read: StoredTree): Rank {
  const flat = new Map<string, Map<number, ForeignTensor>>();
  const put = (state: string, group: string, tensor: ForeignTensor) =>
    flat.set(state, (flat.get(state) ?? new Map()).set(Number(group), tensor));
  let isStage3 = false;
  for (const [name, tensor] of read.tensors) {
    const [, list, group] = WEIGHTS.exec(name) ?? [];
    const [, owner, state] = STATE.exec(name) ?? [];
    isStage3 ||= list === "fp32_flat_groups";
    if (group !== undefined) put("", group, tensor);
    else if (owner !== undefined && tensor.shape.length > 0) put(state!, owner, tensor);
  }
  return { file, isStage3, read, flat };
}

function pieceOf({ file, flat }: Rank, state: string, group: number): Omit<Piece, "begin" | "end"> {
  const tensor = flat.get(state)?.get(group);
  if (tensor !== undefined) return { tensor, file };
  throw corrupt(file, `group ${group} has no ${state || "weights"}`, "The files are of different saves.");
}

/** Stages 1 and 2: parameters one after another, and padding up to twice the number of ranks. */
function* ofGroup(shapes: Shapes, pieces: readonly Piece[], state: string, where: string): Generator<SourceTensor> {
  let begin = 0;
  for (const [name, shape] of shapes) {
    const end = begin + countOf(shape);
    yield tensorOf(name, state, shape, pieces, [...boxesIn(pieces, [begin, end], 0, shape)], where);
    begin = end;
  }
  const ranks = pieces.length;
  const aligned = (count: number) => Math.ceil(count / (2 * ranks));
  const all = pieces.at(-1)?.end ?? 0;
  if (aligned(begin) !== aligned(all)) throw unequal(where, begin, all);
}

/** Stage 3: of each parameter every rank holds as many elements, the last ones padded. `groups`: by group and rank. */
function* ofParameters(
  model: ModelStates,
  groups: readonly (readonly Omit<Piece, "begin" | "end">[])[],
  state: string,
  where: string,
): Generator<SourceTensor> {
  const ranks = groups[0]?.length ?? 0;
  const held = Array.from({ length: ranks }, (_, rank) => laidOut(groups.map((group) => group[rank]!)));
  let begin = 0;
  for (const [name, shape] of model.groups.flatMap((group) => [...group])) {
    const part = Math.ceil(countOf(shape) / ranks);
    yield tensorOf(name, state, shape, held.flat(), [...partsOf(held, begin, shape)], where);
    begin += part;
  }
  for (const pieces of held) if (pieces.at(-1)?.end !== begin) throw unequal(where, begin, pieces.at(-1)?.end ?? 0);
}

function* partsOf(held: readonly (readonly Piece[])[], begin: number, shape: readonly number[]) {
  const count = countOf(shape);
  const part = Math.ceil(count / held.length);
  for (const [rank, pieces] of held.entries()) {
    const length = Math.min(part, count - rank * part);
    if (length > 0) yield* boxesIn(pieces, [begin, begin + length], rank * part, shape);
  }
}

/** Parameters that are not trained: whole, or of stage 3 in parts as those that are. */
export function* frozenOf({ frozen, fragments, file }: ModelStates, where: string): Generator<SourceTensor> {
  for (const [name, shape] of frozen) {
    const held = fragments.map((all) => laidOut(all.has(name) ? [{ tensor: all.get(name)!, file }] : []));
    yield tensorOf(name, "", shape, held.flat(), [...partsOf(held, 0, shape)], where);
  }
}

/** @throws OptError CORRUPT unless the boxes have all elements, BAD_STATE where ranks differ in their element type */
function tensorOf(
  parameter: string,
  state: string,
  shape: readonly number[],
  pieces: readonly Piece[],
  boxes: SourceTensor["boxes"],
  where: string,
): SourceTensor {
  const name = state === "" ? parameter : `${parameter}.${state}`;
  const held = boxes.reduce((sum, { size }) => sum + countOf(size), 0);
  if (held !== countOf(shape))
    throw corrupt(where, `the ranks hold ${held} elements of ${JSON.stringify(name)} [${shape}]`);
  const { dtype } = pieces[0]!.tensor;
  if (pieces.some(({ tensor }) => tensor.dtype !== dtype))
    throw badState(where, `ranks hold ${JSON.stringify(name)} in different types`);
  return { name, dtype, shape, boxes, ...(state === "" ? {} : { role: "state", follows: parameter }) };
}

const countOf = (shape: readonly number[]): number => elementCount(shape) ?? Number.NaN;

const unequal = (where: string, count: number, held: number) =>
  corrupt(
    where,
    `the parameters have ${count} elements, the ranks' groups have ${held}`,
    "The files are of different saves.",
  );

/** The steps of a group's parameters, as PyTorch has them. */
async function stepsOf({ file, read }: Rank, group: number, names: readonly string[]): Promise<SourceTensor[]> {
  const keys = OPTIMIZERS.flatMap((owner) =>
    ["state.", ""].map((state) => `optimizer_state_dict.${owner}.${state}${group}.step`),
  );
  const tensor = keys.map((key) => read.tensors.get(key)).find((one) => one !== undefined);
  const value = tensor
    ? await scalarOf(wholeTensor("step", tensor, file))
    : keys.map((key) => read.values[key]).find(isCount);
  if (typeof value !== "number") return [];
  return names.map((name) => ({ ...scalarTensor(`${name}.step`, value, file), role: "state", follows: name }));
}

/** The options of each group, under our names. `names`: the parameters of the groups. */
export function optionsOf(
  listed: PythonTree | undefined,
  names: readonly (readonly string[])[],
): { readonly [key: string]: Json } {
  const groups = plainOf(listed ?? null);
  if (!Array.isArray(groups) || groups.length === 0 || (groups.length > 1 && groups.length !== names.length)) return {};
  const own = groups.length === 1 ? [names.flat()] : names;
  const renamed = groups.map((group, g): Json => {
    const options = Object.entries(isObject(group) ? group : {}).filter(
      ([name, value]) => value !== null && name !== "param_names",
    );
    return { ...Object.fromEntries(options.map(([name, value]) => [ourOption(name), value])), params: [...own[g]!] };
  });
  return { optimizer: { groups: renamed, counters: {} } };
}
