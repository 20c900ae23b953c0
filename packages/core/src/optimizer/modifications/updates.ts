/** What a modified update needs to know of whole parameters before it is launched: how many elements move, how long it is. */
import type { Slice } from "../../backend/memory";
import { tensor } from "../../create";
import { cast, concat, elementwise } from "../../ops";
import { isRandom, withoutDraws } from "../../rule/rounding";
import type { Rule } from "../../rule/rule";
import type { StoredFormats } from "../../rule/stored";
import { Tensor } from "../../tensor/tensor";
import type { ComputeDType } from "../../values/dtype";
import { sizeOf } from "../../values/shape";
import type { Algorithm, BaseOptions } from "../algorithm";
import { norms } from "../gradients/norm";
import { OneOf, type OwnScalars, ownScalarsOf } from "../own-scalars";
import { type PlannedLaunch, rewrittenBy } from "../plan";
import { StageLaunch } from "../stage-scalars";
import { type Staged, StagedLaunch } from "../staged-launch";
import { MASTER, RADIUS, type Slot } from "../state/state";
import type { Renewed } from "./gradients";
import { plainRule, updateOf } from "./modified";
import { type Outcome, outcomeRule, type Update } from "./update";

/** The launch with what the modifications of its options compute before it. */
export function withModifications<Options extends BaseOptions>(
  algorithm: Algorithm<Options>,
  main: PlannedLaunch<Options>,
  own: PlannedLaunch<Options> | StagedLaunch<Options>,
  renewed: ReadonlyMap<Slot, Renewed>,
): StagedLaunch<Options> {
  const { options } = main.group;
  const staged: Staged = own instanceof StagedLaunch ? own.staged : { directions: [] };
  const update = updateOf(algorithm, options);
  const stage = update
    ? updateStage(main, plainRule(algorithm, options), update, own.tensors, staged.scalars ?? {})
    : null;
  const gradients = main.slots.map((slot) => renewed.get(slot)).filter((state) => state !== undefined);
  return new StagedLaunch(main, own.tensors, {
    ...staged,
    scalars: { ...staged.scalars, ...stage?.scalars },
    states: [...(staged.states ?? []), ...gradients, ...(stage?.renewed ?? [])],
  });
}

/** Scalars of each parameter, and state that is renewed with the step. */
interface UpdateStage {
  readonly scalars: OwnScalars;
  readonly renewed: readonly Renewed[];
}

/**
 * Runs before the launch of a modified rule.
 *
 * @param tensors slices of the rule's buffers, for each parameter
 * @param before scalars of each parameter that the algorithm's own stages computed
 */
function updateStage<Options extends BaseOptions>(
  main: PlannedLaunch<Options>,
  rule: Rule,
  update: Update,
  tensors: readonly (readonly Slice[])[],
  before: OwnScalars,
): UpdateStage {
  const params = main.slots.map(({ param, state }) => state!.tensors.get(MASTER) ?? param);
  const placements = main.slots.map(({ param }) => param.placement);
  const dtype = main.kernel.spec.dtype as ComputeDType;
  let scalars = before;
  const batches = batchesOf(params, placements);
  const normsOf = (outcome: Outcome) => {
    const launchOne = launcherOf(main, outcomeRule(rule, update, outcome), tensors, scalars);
    const found = batches.map((batch) => {
      const outcomes = batch.map(launchOne);
      const norms = normsOfWholes(
        outcomes,
        batch.map((i) => placements[i]!),
        dtype,
      );
      for (const each of outcomes) each.dispose();
      return norms;
    });
    return found.length === 1 ? found[0]! : concat(found);
  };
  const constants = (values: readonly number[]) => tensor(values, { dtype, device: main.device.name });
  const renewed: Renewed[] = [];
  if (update.cautious) {
    const lengths = normsOf("moves");
    const sizes = params.map((param, i) => Math.max(sizeOf(placements[i]?.shape ?? param.shape), 1));
    const shares = elementwise("div", [elementwise("mul", [lengths, lengths]), constants(sizes)]);
    scalars = { ...scalars, cautiousBy: elementwise("div", [1, elementwise("maximum", [shares, 1e-3])]) };
  }
  if (update.hyperball) {
    const states = main.slots.map(({ state }) => state!.tensors.get(RADIUS));
    const none = constants([0]);
    const kept = concat(states.map((radius) => (radius ? cast(radius, dtype) : none)));
    const isMatrix = constants(states.map((radius) => (radius ? 1 : 0)));
    const isKnown = elementwise("less", [0, kept]);
    const radii = elementwise("mul", [
      elementwise("select", [isKnown, kept, normsOfWholes(params, placements, dtype)]),
      isMatrix,
    ]);
    for (const [i, radius] of states.entries()) if (radius) renewed.push([radius, radii.slice(i, i + 1)]);
    const over = (lengths: Tensor, otherwise: number) => {
      const isLong = elementwise("less", [0, elementwise("mul", [lengths, radii])]); // not of vectors, nor of zeros
      return elementwise("select", [isLong, elementwise("div", [radii, lengths]), otherwise]);
    };
    scalars = { ...scalars, lengthBy: over(normsOf("way"), 0) };
    scalars = { ...scalars, radiusBy: over(normsOf("end"), 1) };
  }
  return { scalars, renewed };
}

/** So many elements of an outcome are in memory at a time: the next ones are written where they are in the cache. */
const AT_ONCE = 1 << 20;

/** Positions of parameters, in order. Ranks exchange the norms of all at once. */
function batchesOf(params: readonly Tensor[], placements: readonly Tensor["placement"][]): number[][] {
  const indices = [...params.keys()];
  if (placements.some((placement) => placement !== null)) return [indices];
  const batches: number[][] = [];
  let room = 0;
  for (const i of indices) {
    room -= params[i]!.size;
    if (room >= 0) batches.at(-1)!.push(i);
    else {
      batches.push([i]);
      room = AT_ONCE - params[i]!.size;
    }
  }
  return batches;
}

/** Norms of whole tensors, of which these may be parts. */
function normsOfWholes(
  tensors: readonly Tensor[],
  placements: readonly Tensor["placement"][],
  dtype: ComputeDType,
): Tensor {
  const parts = tensors.map((each, i) => {
    if (placements[i] === null || each.placement !== null) return each;
    const part = each.alias();
    part.placement = placements[i]!;
    return part;
  });
  return cast(norms(parts), dtype);
}

/** Launches a rule that writes one more buffer, for the parameter of a position. It changes nothing that lasts. */
function launcherOf<Options extends BaseOptions>(
  main: PlannedLaunch<Options>,
  rule: Rule,
  tensors: readonly (readonly Slice[])[],
  own: OwnScalars,
): (i: number) => Tensor {
  const { device, kernel, slots } = main;
  const { dtype, stored } = kernel.spec as { dtype: ComputeDType; stored?: StoredFormats };
  const length = rule.buffers.length - 1; // without the 16-bit parameter of master weights, which is not written
  const plainly = (format: StoredFormats[number]) => (isRandom(format) ? withoutDraws(format) : format);
  const formats = stored && { stored: [...stored.slice(0, length).map(plainly), "f32"] as StoredFormats };
  const rewrites = main.rewrites.filter(({ rewrite }) => rewrite !== "guard");
  const launched = device.kernel({ kind: "rule", rule: rewrittenBy(rule, rewrites), dtype, ...formats });
  const scalarSource = new StageLaunch(rule, main, main.extraScalars.slice(0, rewrites.length)); // a guard is the last
  return (i) => {
    const outcome = Tensor.empty(slots[i]!.param.shape, dtype, device);
    const one = new OneOf(scalarSource, ownScalarsOf(rule, dtype, own, i), false);
    const list = [...tensors[i]!.slice(0, length), outcome.memorySlice()];
    device.launch({ kind: "rule", kernel: launched, tensors: [list], scalars: one.next() }, one);
    outcome.storage.overwritten();
    return outcome;
  };
}
