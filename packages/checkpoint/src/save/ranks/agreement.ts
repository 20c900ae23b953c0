/** What ranks agree on before they write: that they save the same, the shape of every whole tensor, and who has which. */
import { check } from "@opt/core";
import type { StoredDType } from "../../format/dtype";
import type { Role } from "../../format/source";
import type { LocalTensor } from "../../format/tensors";
import type { Box } from "../../layout/box";
import { checkPatterns, type Layout } from "../../layout/layout";
import { boxesOfRank, placementsGiven, wholeShape } from "../../layout/placements";
import type { RecordedTensor } from "../shards/assemble";
import type { SaidValues } from "./values";

export interface TensorDescription {
  readonly name: string;
  readonly dtype: StoredDType;
  /** Of the slice, or of the whole where boxes are given. */
  readonly shape: readonly number[];
  readonly role: Role;
  readonly follows?: string;
  readonly boxes?: readonly Box[];
}

/** What each rank says at first. */
export interface RankProposal {
  readonly terms: string;
  readonly tensors: readonly TensorDescription[];
  readonly values: SaidValues;
}

export function describeTensor({ name, dtype, shape, role, follows, boxes }: LocalTensor): TensorDescription {
  return { name, dtype, shape, role, ...(follows === undefined ? {} : { follows }), ...(boxes ? { boxes } : {}) };
}

interface Holder {
  readonly rank: number;
  readonly tensor: TensorDescription;
}

/**
 * `isWhole`: shapes are of whole tensors.
 *
 * @throws OptError BAD_ARGUMENT if terms differ, BAD_DTYPE, BAD_SHAPE if tensors do not fit
 */
export function agree(layout: Layout, said: readonly RankProposal[], isWhole: boolean): RecordedTensor[] {
  const { terms } = said[0]!;
  const held = new Map<string, [Holder, ...Holder[]]>();
  for (const [rank, { terms: own, tensors }] of said.entries()) {
    check(
      own === terms,
      "BAD_ARGUMENT",
      "saveCheckpoint",
      () => `all ranks must say the same, but rank 0 says ${terms}; rank ${rank} says ${own}.`,
      "Start all ranks alike.",
    );
    for (const tensor of tensors) {
      const holders = held.get(tensor.name);
      if (holders) holders.push({ rank, tensor });
      else held.set(tensor.name, [{ rank, tensor }]);
    }
  }
  checkPatterns(
    layout,
    Array.from(held.values(), ([{ tensor }]) => tensor),
  );
  return [...held.values()].map((holders) => agreeOn(layout, holders, said.length, isWhole));
}

function agreeOn(layout: Layout, holders: readonly Holder[], ranks: number, isWhole: boolean): RecordedTensor {
  const [{ rank: first, tensor }] = holders as [Holder];
  const { boxes, ...described } = tensor;
  const isGiven = isWhole || boxes !== undefined;
  for (const { rank, tensor: other } of holders) rejectDisagreement(first, tensor, rank, other, isGiven);
  if (boxes)
    return { ...described, placements: placementsGiven(holders.map(({ rank, tensor }) => [rank, tensor.boxes!])) };
  const some = holders.length < ranks ? { holders: holders.map(({ rank }) => rank) } : {};
  if (isGiven) return { ...described, ...some };
  const shapes = new Map(holders.map(({ rank, tensor }) => [rank, tensor.shape]));
  const shape = wholeShape(layout, { ...described, rank: tensor.shape.length }, (rank) => shapes.get(rank));
  return { ...described, shape, ...some };
}

function rejectDisagreement(
  first: number,
  expected: TensorDescription,
  rank: number,
  tensor: TensorDescription,
  isGiven: boolean,
): void {
  const where = `tensor ${JSON.stringify(tensor.name)}`;
  check(
    tensor.dtype === expected.dtype,
    "BAD_DTYPE",
    where,
    () => `rank ${first} holds ${expected.dtype}, rank ${rank} ${tensor.dtype}.`,
    "Make them equal.",
  );
  check(
    (tensor.boxes === undefined) === (expected.boxes === undefined),
    "BAD_SHAPE",
    where,
    () => `rank ${first} and rank ${rank} must both give boxes of it, or neither.`,
    "Make them alike.",
  );
  const isSame = !isGiven || `${tensor.shape}` === `${expected.shape}`;
  check(
    isSame,
    "BAD_SHAPE",
    where,
    () => `rank ${first} says that the whole is [${expected.shape}], rank ${rank} [${tensor.shape}].`,
    "Make them equal.",
  );
}

/** What a rank hands over must be what the layout says it holds. @throws OptError BAD_SHAPE */
export function checkSlices(
  layout: Layout,
  agreed: readonly RecordedTensor[],
  local: readonly LocalTensor[],
  rank: number,
): void {
  const slices = new Map(local.map(({ name, shape }) => [name, shape]));
  for (const tensor of agreed) {
    const slice = slices.get(tensor.name);
    if (!slice || tensor.placements) continue;
    const [box, ...more] = boxesOfRank(layout, tensor, rank);
    const isOne = box !== undefined && more.length === 0;
    const fits = isOne ? `${box.size}` === `${slice}` : !box && slice.includes(0);
    const wanted = isOne ? `[${box.size}]` : `${more.length + (box ? 1 : 0)} boxes`;
    check(
      fits,
      "BAD_SHAPE",
      `tensor ${JSON.stringify(tensor.name)}`,
      () => `rank ${rank} must hold ${wanted} of [${tensor.shape}], got [${slice}].`,
      "Fix the slice or the layout.",
    );
  }
}
