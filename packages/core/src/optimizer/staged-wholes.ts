/** The transform of a staged step where ranks have parts of parameters: it sees whole ones, and each rank gets its parts of the results. */
import { concat } from "../ops";
import { atOwners, inWholes, partsOfWholes, wholesOf } from "../placement/wholes";
import { Tensor } from "../tensor/tensor";
import { sameShape } from "../values/shape";
import type { Algorithm, BaseOptions } from "./algorithm";
import { checkStaged, type Staged } from "./staged-launch";
import type { Together } from "./staged-together";
import { MASTER, type Slot } from "./state/state";

type Renewed = NonNullable<Staged["states"]>[number];

type Transform = (
  directions: readonly Tensor[],
  params: readonly Tensor[],
  states: readonly ReadonlyMap<string, Tensor>[],
) => Staged;

/** @throws OptError as `checkStaged` */
export function transformWholes<Options extends BaseOptions>(
  algorithm: Algorithm<Options>,
  options: Options,
  { ofDirectionsAlone, together }: { readonly ofDirectionsAlone?: boolean; readonly together?: Together },
  slots: readonly Slot[],
  directions: readonly Tensor[],
  transform: Transform,
): Staged {
  const placements = slots.map(({ param }) => param.placement);
  const params = slots.map(({ param, state }) => state!.tensors.get(MASTER) ?? param);
  const states = slots.map(({ state }) => state!.tensors);
  const shared = Object.keys(together?.scalars ?? {});
  const pick = <Item>(list: readonly Item[], indices: readonly number[]) => indices.map((i) => list[i]!);
  if (ofDirectionsAlone) {
    const owned = (indices: readonly number[], wholes: readonly Tensor[]) => {
      const staged = transform(wholes, pick(params, indices), pick(states, indices));
      checkStaged(algorithm, shared, wholes, staged);
      return staged.directions;
    };
    return { directions: atOwners(directions, placements, owned) };
  }
  const parts = inWholes(directions, placements, (outer, wholeDirections) =>
    inWholes(pick(params, outer), pick(placements, outer), (inner, wholeParams) => {
      const indices = pick(outer, inner);
      const { states, divide } = wholeStates(algorithm, options, pick(slots, indices));
      const staged = transform(pick(wholeDirections, inner), wholeParams, states);
      checkStaged(algorithm, shared, pick(wholeDirections, inner), staged);
      return {
        ...staged,
        directions: partsOfWholes(staged.directions, pick(placements, indices)),
        states: (staged.states ?? []).map(divide),
      };
    }),
  ).flat();
  return parts.length === 1 ? parts[0]! : joined(parts);
}

/** States with whole tensors in the place of those of stages that are divided, and what divides a renewed one again. */
function wholeStates<Options extends BaseOptions>(
  { stageState }: Algorithm<Options>,
  options: Options,
  slots: readonly Slot[],
) {
  const divided = slots.flatMap(({ param, state }, i) => {
    const { placement } = param;
    if (placement === null) return [];
    const keys = Object.entries(stageState?.(placement.shape, options) ?? {}).filter(([, own]) =>
      sameShape(own, placement.shape),
    );
    return keys.map(([key]) => ({ i, key, placement, tensor: state!.tensors.get(key)! }));
  });
  const placements = divided.map(({ placement }) => placement);
  const wholes = wholesOf(
    divided.map(({ tensor }) => tensor),
    placements,
  );
  const states = slots.map(({ state }) => new Map(state!.tensors));
  for (const [k, { i, key }] of divided.entries()) states[i]!.set(key, wholes[k]!);
  const divide = (renewed: Renewed): Renewed => {
    const k = wholes.indexOf(renewed[0]);
    return k < 0 ? renewed : [divided[k]!.tensor, partsOfWholes([renewed[1]], [placements[k]!])[0]!];
  };
  return { states, divide };
}

/** What was computed for some parameters after the others. */
function joined(parts: readonly Staged[]): Staged {
  const scalars = Object.keys(parts[0]!.scalars ?? {}).map((name) => {
    const given = parts.map((each) => each.scalars![name]!);
    const areNumbers = given.every((each) => !(each instanceof Tensor));
    return [name, areNumbers ? (given as (readonly number[])[]).flat() : concat(given as Tensor[])] as const;
  });
  const found = Object.keys(parts[0]!.found ?? {}).map(
    (name) => [name, concat(parts.map((each) => each.found![name]!))] as const,
  );
  return {
    directions: parts.flatMap(({ directions }) => directions),
    scalars: Object.fromEntries(scalars),
    found: Object.fromEntries(found),
    states: parts.flatMap(({ states }) => states!),
  };
}
