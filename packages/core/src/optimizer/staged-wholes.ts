/** The transform of a staged step where ranks have parts of parameters: it sees whole ones, and each rank gets its parts of the results. */
import { concat } from "../ops";
import { atOwners, inWholes, partsOfWholes } from "../placement/wholes";
import { Tensor } from "../tensor/tensor";
import type { Algorithm, BaseOptions } from "./algorithm";
import { checkStaged, type Staged } from "./staged-launch";
import { MASTER, type Slot } from "./state/state";

type Transform = (
  directions: readonly Tensor[],
  params: readonly Tensor[],
  states: readonly ReadonlyMap<string, Tensor>[],
) => Staged;

/** @throws OptError as `checkStaged` */
export function transformWholes<Options extends BaseOptions>(
  algorithm: Algorithm<Options>,
  ofDirectionsAlone: boolean,
  slots: readonly Slot[],
  directions: readonly Tensor[],
  transform: Transform,
): Staged {
  const placements = slots.map(({ param }) => param.placement);
  const params = slots.map(({ param, state }) => state!.tensors.get(MASTER) ?? param);
  const states = slots.map(({ state }) => state!.tensors);
  const pick = <Item>(list: readonly Item[], indices: readonly number[]) => indices.map((i) => list[i]!);
  const checked = (indices: readonly number[], wholes: readonly Tensor[], wholeParams: readonly Tensor[]) => {
    const staged = transform(wholes, wholeParams, pick(states, indices));
    checkStaged(algorithm, wholes, staged);
    return staged;
  };
  if (ofDirectionsAlone) {
    const owned = (indices: readonly number[], wholes: readonly Tensor[]) =>
      checked(indices, wholes, pick(params, indices)).directions;
    return { directions: atOwners(directions, placements, owned) };
  }
  const parts = inWholes(directions, placements, (outer, wholeDirections) =>
    inWholes(pick(params, outer), pick(placements, outer), (inner, wholeParams) => {
      const indices = pick(outer, inner);
      const staged = checked(indices, pick(wholeDirections, inner), wholeParams);
      return { ...staged, directions: partsOfWholes(staged.directions, pick(placements, indices)) };
    }),
  ).flat();
  return parts.length === 1 ? parts[0]! : joined(algorithm.stageScalars ?? [], parts);
}

/** What was computed for some parameters after the others. */
function joined(names: readonly string[], parts: readonly Staged[]): Staged {
  const scalars = names.map((name) => {
    const given = parts.map((each) => each.scalars![name]!);
    const areNumbers = given.every((each) => !(each instanceof Tensor));
    return [name, areNumbers ? (given as (readonly number[])[]).flat() : concat(given as Tensor[])] as const;
  });
  return {
    directions: parts.flatMap(({ directions }) => directions),
    scalars: Object.fromEntries(scalars),
    states: parts.flatMap(({ states }) => states ?? []),
  };
}
