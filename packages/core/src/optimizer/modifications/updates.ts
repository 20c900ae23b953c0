/** What a modified update needs to know of whole parameters before it is launched: how many elements move, how long it is. */
import type { Slice } from "../../backend/memory";
import type { Kernel } from "../../backend/spec";
import { tensor } from "../../create";
import type { ScalarSource } from "../../device/scalar-source";
import { cast, concat, elementwise } from "../../ops";
import { launchMap } from "../../ops/map";
import { Expression } from "../../rule/expression";
import { trace } from "../../rule/program";
import { isRandom, withoutDraws } from "../../rule/rounding";
import type { Rule } from "../../rule/rule";
import type { StoredFormats } from "../../rule/stored";
import { div, maximum, mul } from "../../rule/symbols";
import { Tensor } from "../../tensor/tensor";
import { byteSize, type ComputeDType } from "../../values/dtype";
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
import { type ModifiedUpdate, movesRule, outcomeRule } from "./update";

/** The factor of elements that move, from the norm of `moves` and the number of elements. */
const CAUTION = /* @__PURE__ */ (() => {
  const [length, size] = [0, 1].map((slot) => new Expression("buffer", [], slot)) as [Expression, Expression];
  return trace(
    ["length", "size"],
    [],
    [{ slot: 0, expression: div(1, maximum(div(mul(length, length), size), 1e-3)) }],
  );
})();

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
  update: ModifiedUpdate,
  tensors: readonly (readonly Slice[])[],
  before: OwnScalars,
): UpdateStage {
  const params = main.slots.map(({ param, state }) => state!.tensors.get(MASTER) ?? param);
  const placements = main.slots.map(({ param }) => param.placement);
  const dtype = main.kernel.spec.dtype as ComputeDType;
  let scalars = before;
  const isDivided = placements.some((placement) => placement !== null);
  const batches = batchesOf(params, isDivided);
  const normsOf = (outcome: Rule) => {
    const launcher = new OutcomeLauncher(main, outcome, tensors, scalars, isDivided);
    if (launcher.hasSums) return elementwise("sqrt", [launcher.sums()]);
    const found = batches.map((batch) => {
      const outcomes = batch.map((i) => launcher.outcome(i));
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
    const lengths = normsOf(movesRule(rule, update.isScaled));
    const sizes = params.map((param, i) => Math.max(sizeOf(placements[i]?.shape ?? param.shape), 1));
    scalars = { ...scalars, cautiousBy: launchMap(CAUTION, dtype, [lengths, constants(sizes)], [], lengths.shape) };
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
    scalars = { ...scalars, lengthBy: over(normsOf(outcomeRule(rule, update, "way")), 0) };
    scalars = { ...scalars, radiusBy: over(normsOf(outcomeRule(rule, update, "end")), 1) };
  }
  return { scalars, renewed };
}

/** So many elements of an outcome are in memory at a time: the next ones are written where they are in the cache. */
const AT_ONCE = 1 << 20;

/** Positions of parameters, in order. Ranks exchange the norms of all at once. */
function batchesOf(params: readonly Tensor[], isDivided: boolean): number[][] {
  const indices = [...params.keys()];
  if (isDivided) return [indices];
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

/** Launches a rule that writes one more buffer. It changes nothing that lasts. */
class OutcomeLauncher<Options extends BaseOptions> {
  /** True if the device gives the sums of squares of outcomes, which it stores nowhere. Ranks need outcomes. */
  readonly hasSums: boolean;
  readonly #kernel: Kernel<"rule">;
  readonly #scalarSource: ScalarSource;

  constructor(
    private readonly main: PlannedLaunch<Options>,
    private readonly rule: Rule,
    private readonly tensors: readonly (readonly Slice[])[],
    private readonly own: OwnScalars,
    isDivided: boolean,
  ) {
    const { device, kernel } = main;
    const { dtype, stored } = kernel.spec;
    const plainly = (format: StoredFormats[number]) => (isRandom(format) ? withoutDraws(format) : format);
    const formats = stored && { stored: [...stored.slice(0, this.#inputs).map(plainly), "f32"] as StoredFormats };
    const rewrites = main.rewrites.filter(({ rewrite }) => rewrite !== "guard");
    this.hasSums = !isDivided && (device.backend.sumsRule?.(rule) ?? false);
    const spec = { kind: "rule", rule: rewrittenBy(rule, rewrites), dtype, ...formats } as const;
    this.#kernel = device.kernel(this.hasSums ? { ...spec, sums: true } : spec);
    this.#scalarSource = new StageLaunch(rule, main, main.extraScalars.slice(0, rewrites.length)); // a guard is the last
  }

  /** Buffers before the outcome, without the 16-bit parameter of master weights, which is not written. */
  get #inputs(): number {
    return this.rule.buffers.length - 1;
  }

  /** The outcome of the parameter of a position. */
  outcome(i: number): Tensor {
    const { main } = this;
    const outcome = Tensor.empty(main.slots[i]!.param.shape, this.#kernel.spec.dtype, main.device);
    this.#launch([i], outcome, [outcome.memorySlice()]);
    return outcome;
  }

  /** Of each parameter's outcome: in one launch, unless parameters have scalars of their own. */
  sums(): Tensor {
    const { rule, own, tensors, main } = this;
    const { dtype } = this.#kernel.spec;
    const sums = Tensor.empty([tensors.length], dtype, main.device);
    const all = sums.memorySlice();
    const places = tensors.map((_, i) => ({ ...all, byteOffset: all.byteOffset + i * byteSize(dtype), length: 1 }));
    const isAlike = !rule.scalars.some((scalar) => scalar in own);
    if (isAlike) this.#launch([...tensors.keys()], sums, places);
    else for (const [i, place] of places.entries()) this.#launch([i], sums, [place]);
    return sums;
  }

  #launch(indices: readonly number[], { device, storage }: Tensor, outcomes: readonly Slice[]): void {
    const { rule, own } = this;
    const kernel = this.#kernel;
    const one = new OneOf(this.#scalarSource, ownScalarsOf(rule, kernel.spec.dtype, own, indices[0]!), false);
    const tensors = indices.map((i, k) => [...this.tensors[i]!.slice(0, this.#inputs), outcomes[k]!]);
    device.launch({ kind: "rule", kernel, tensors, scalars: one.next() }, one);
    storage.overwritten();
  }
}
