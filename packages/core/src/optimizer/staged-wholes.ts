/** The transform of a staged step where ranks have parts of parameters: the owner of each computes with the whole, and each rank gets its part of the results. */
import { cast } from "../ops";
import { atOwners } from "../placement/wholes";
import type { MeshAxis } from "../tensor/placement";
import type { Tensor } from "../tensor/tensor";
import type { Algorithm, BaseOptions } from "./algorithm";
import { fromOwners, type Numbers, spread } from "./numbers-of-owners";
import { checkStaged, type Staged } from "./staged-launch";
import type { Together } from "./staged-together";
import { dividedStageState, MASTER, type Slot } from "./state/state";

type Transform = (
  directions: readonly Tensor[],
  params: readonly Tensor[],
  states: readonly ReadonlyMap<string, Tensor>[],
) => Staged;

/** @throws OptError as `checkStaged` */
export function transformWholes<Options extends BaseOptions>(
  algorithm: Algorithm<Options>,
  options: Options,
  stages: { ofDirectionsAlone?(options: Options): boolean; readonly together?: Together },
  slots: readonly Slot[],
  directions: readonly Tensor[],
  transform: Transform,
): Staged {
  const params = slots.map(({ param, state }) => state!.tensors.get(MASTER) ?? param);
  const states = slots.map(({ state }) => state!.tensors);
  const { together } = stages;
  const ofDirectionsAlone = stages.ofDirectionsAlone?.(options) === true;
  const shared = Object.keys(together?.scalars ?? {});
  const checked = (wholes: readonly Tensor[], ...more: [readonly Tensor[], readonly ReadonlyMap<string, Tensor>[]]) => {
    const staged = transform(wholes, ...more);
    checkStaged(algorithm, shared, together?.found ?? [], wholes, staged);
    return staged;
  };
  if (slots.every(({ param }) => param.placement === null)) return checked(directions, params, states);
  const keys = slots.map((slot) => (ofDirectionsAlone ? [] : dividedStageState(algorithm, slot, options)));
  const items = slots.map(({ param: { placement }, owner }, i) => ({
    ...{ placement, owner },
    written: [directions[i]!, ...keys[i]!.map((key) => states[i]!.get(key)!)],
    read: ofDirectionsAlone ? [] : [params[i]!],
  }));
  let here: readonly number[] = [];
  let own: Staged | undefined;
  const wholeStates = new Set<Tensor>();
  const results = atOwners(items, (indices, wholes) => {
    const statesOf = (i: number, k: number) => {
      const whole = keys[i]!.map((key, at) => [key, wholes[k]![1 + at]!] as const);
      for (const [, state] of whole) wholeStates.add(state);
      return new Map([...states[i]!, ...whole]);
    };
    const wholeDirections = wholes.map(([direction]) => direction!);
    const wholeParams = indices.map((i, k) => (ofDirectionsAlone ? params[i]! : wholes[k]!.at(-1)!));
    const dtypes = wholeDirections.map(({ dtype }) => dtype);
    const staged = checked(wholeDirections, wholeParams, indices.map(statesOf));
    [here, own] = [indices, staged];
    const next = new Map(staged.states);
    return wholes.map(([, ...others], k) => [
      cast(staged.directions[k]!, dtypes[k]!),
      ...keys[indices[k]!]!.map((_, at) => cast(next.get(others[at]!) ?? others[at]!, others[at]!.dtype)),
    ]);
  });
  const ofOwn = (own?.states ?? []).filter(([state]) => !wholeStates.has(state));
  const divided = results.flatMap(([, ...nexts], i) =>
    nexts.map((next, at) => [states[i]!.get(keys[i]![at]!)!, next] as const),
  );
  const places = slots.map((_, i) => (here.includes(i) ? here.indexOf(i) : undefined));
  const scalars = (algorithm.stageScalars ?? []).filter((scalar) => !shared.includes(scalar));
  const numbersOf = (names: readonly string[], given: Staged["scalars"]) =>
    toAll(spread(names, places, given, directions[0]!), slots);
  return {
    directions: results.map(([direction]) => direction!),
    scalars: numbersOf(scalars, own?.scalars),
    found: numbersOf(together?.found ?? [], own?.found),
    states: [...ofOwn, ...divided],
  };
}

/** From the owners of parameters to all ranks that have parts: along outer cuts first, whose ranks have the owner's inner part alike. */
function toAll(numbers: Numbers, slots: readonly Slot[]): Numbers {
  const depths = Math.max(...slots.map(({ param }) => param.placement?.cuts.length ?? 0));
  let all = numbers;
  for (let depth = 0; depth < depths; depth++) {
    const axisOf = ({ param }: Slot): MeshAxis<Tensor> | undefined => param.placement?.cuts[depth]?.axis;
    for (const axis of new Set(slots.flatMap((slot) => axisOf(slot) ?? []))) {
      const owners = slots.map((slot) => (axisOf(slot) === axis ? slot.owner![depth]! : null));
      all = fromOwners(axis, all, owners);
    }
  }
  return all;
}
