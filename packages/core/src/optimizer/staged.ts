/** Steps of several stages: ops between two launches compute what no rule can say of one element (matrix products, norms, means). */
import type { Slice } from "../backend/memory";
import { upload } from "../create";
import { dependsOn } from "../device/host-code";
import { activeTracer, openTracer } from "../device/tracer";
import { check } from "../errors/errors";
import { show } from "../errors/show";
import { cast } from "../ops";
import { checkNumbers } from "../ops/check-tensor";
import { normalsAt } from "../random/step-normals";
import { isRandom, withoutDraws } from "../rule/rounding";
import type { Rule } from "../rule/rule";
import type { StoredFormats } from "../rule/stored";
import { Tensor } from "../tensor/tensor";
import type { ComputeDType } from "../values/dtype";
import { narrow } from "../values/half";
import type { Algorithm, BaseOptions, Counters, GroupOptions } from "./algorithm";
import { advanced, checkRule } from "./check-rule";
import type { ParameterGroup } from "./group";
import { hasStageState } from "./modifications/modified";
import { Optimizer } from "./optimizer";
import type { GroupInput } from "./parameters";
import { type PlannedLaunch, rewrittenBy } from "./plan";
import { StageLaunch } from "./stage-scalars";
import { type Staged, StagedLaunch } from "./staged-launch";
import { allTogether, type Together } from "./staged-together";
import { transformWholes } from "./staged-wholes";
import { DIRECTION, type StepCounter } from "./state/state";

export interface Stages<Options extends BaseOptions> {
  /**
   * Writes the buffer `direction` and nothing else, from the buffers of the algorithm's rule. That rule finds in it what `transform`
   * returned. Its scalars are among the algorithm's.
   */
  rule(options: Options): Rule;
  /**
   * New directions, and what else the rule's launch needs, from the directions of parameters that step together. Where ranks have parts
   * of parameters, each has one rank as its owner, which gets the whole. State of the parameter's shape stays divided, other state is the
   * owner's.
   */
  transform(directions: readonly Tensor[], step: StagedStep<Options>): Staged;
  /** The options that `transform` reads: compiled functions are traced again when one changes. */
  readonly transformedBy: readonly (keyof Options & string)[];
  /** What `transform` does at these counters, where it differs from step to step: compiled functions have a trace for each. */
  phase?(options: Options, counters: Counters): string;
  /** Numbers that all parameters of a step share, whichever launches they are in. */
  readonly together?: Together;
  /** True if `transform` reads and returns directions alone. Where ranks have parts of parameters, nothing else travels to owners. */
  ofDirectionsAlone?(options: Options): boolean;
}

/** The parameters that step together, for `transform`. */
export interface StagedStep<Options extends BaseOptions> {
  readonly options: Options;
  /** Those of this step. What `transform` does may depend on them as `phase` says; rules have scalars for all else. */
  readonly counters: Counters;
  /** Master weights in the place of 16-bit parameters. */
  readonly params: readonly Tensor[];
  /** The state of each parameter, by snake_case name. Only the rule's launch may write it. */
  readonly states: readonly ReadonlyMap<string, Tensor>[];
  /**
   * Launches a rule on lists of its buffers, all in the dtype of the directions. It writes none that are state. Its scalars are
   * `constants`, or among the algorithm's, which each run of a compiled function computes again.
   */
  launch(rule: Rule, tensors: readonly (readonly Tensor[])[], constants?: Readonly<Record<string, number>>): void;
  /**
   * Standard normal numbers of the shape, dtype and device of a tensor. They depend on the seed, the step and the element alone, and each
   * run of a compiled function draws those of its step.
   */
  normals(like: Tensor, seed: number): Tensor;
}

/** Base of optimizers whose rule has a last buffer `direction`, for which no state is stored. */
export abstract class StagedOptimizer<Options extends BaseOptions> extends Optimizer<Options> {
  /** What comes before the rule's launch: a constant. */
  protected abstract stages(): Stages<Options>;

  /** @throws OptError UNSUPPORTED for `lazyMode`, and for `stateDType` where state has shapes of its own; further as `Optimizer` */
  override addGroup(group: GroupInput<Options>): void {
    checkWhole(this.algorithm, { ...this.defaults, ...group });
    super.addGroup(group);
  }

  /** @internal */
  protected override get hasStages(): boolean {
    return true;
  }

  /** @internal */
  protected override settingsOf({ options, slots }: ParameterGroup<Options>, rule: Rule): readonly unknown[] {
    const { name: where } = this.algorithm;
    checkWhole(this.algorithm, options);
    for (const { param } of slots) checkNumbers(where, param); // a direction has one number for each element
    const stages = this.stages();
    checkStages(where, stages);
    checkRule(this.algorithm, rule, true);
    const first = stages.rule(options);
    checkFirst(where, first, rule);
    return [first, JSON.stringify(stages.transformedBy.map((name) => options[name]))];
  }

  /** @internal */
  protected override staged(launches: readonly PlannedLaunch<Options>[]): readonly StagedLaunch<Options>[] {
    const stages = this.stages();
    const each = launches.map((launch) => this.#stagedAlone(launch, stages));
    return stages.together ? allTogether(this.algorithm, this.parameters(), each, stages.together) : each;
  }

  #stagedAlone(launch: PlannedLaunch<Options>, stages: Stages<Options>): StagedLaunch<Options> {
    const { options } = launch.group;
    const counters = advanced(this.algorithm, launch.counter.counters, options);
    if (stages.phase) dependsOnPhase(launch, (now) => stages.phase!(options, now));
    const first = new StageLaunch(stages.rule(options), launch, plainScalars(launch));
    const directions = launchFirst(first, launch);
    const staged = transformWholes(
      this.algorithm,
      options,
      stages,
      launch.slots,
      directions,
      (wholes, params, states) => {
        return stages.transform(wholes, {
          ...{ options, counters, params, states },
          launch: (...given) => launchStage(launch, ...given),
          normals: (...given) => drawNormals(first, ...given),
        });
      },
    );
    const results = staged.directions.map((result, i) => cast(result, directions[i]!.dtype));
    for (const direction of directions) if (!results.includes(direction)) direction.dispose();
    const tensors = results.map((result, i) => withDirection(launch, i, result));
    return new StagedLaunch(launch, tensors, staged);
  }
}

/** @throws OptError UNSUPPORTED for `lazyMode` and for `stateDType` */
function checkWhole<Options extends BaseOptions>(algorithm: Algorithm<Options>, options: Options & GroupOptions): void {
  const { name: where } = algorithm;
  const { lazyMode, stateDType = "f32" } = options;
  check(
    !lazyMode,
    "UNSUPPORTED",
    where,
    () => "lazyMode steps some rows, and this step needs all of a parameter.",
    "Leave it out: row-sparse gradients are stepped as dense ones.",
  );
  check(
    stateDType === "f32" || !hasStageState(algorithm, options),
    "UNSUPPORTED",
    `${where} stateDType`,
    () => `its state has shapes of its own and is stored as f32, got ${stateDType}.`,
    "Leave it out.",
  );
}

/** @throws OptError BAD_ARGUMENT */
function checkStages(where: string, stages: unknown): void {
  const { rule, transform, transformedBy } = Object(stages);
  const isWhole = typeof rule === "function" && typeof transform === "function" && Array.isArray(transformedBy);
  check(
    isWhole,
    "BAD_ARGUMENT",
    where,
    () => `stages() must give { rule, transform, transformedBy }, got ${show(stages)}.`,
    "Two functions, and the options that the second looks at.",
  );
}

/** @throws OptError BAD_ARGUMENT for a first rule that writes anything but the direction, or has other buffers */
function checkFirst(where: string, first: Rule, { buffers }: Rule): void {
  const fits = String(first?.buffers) === String(buffers) && String(first.writes) === DIRECTION;
  check(
    fits,
    "BAD_ARGUMENT",
    where,
    () =>
      `the first rule must write ${DIRECTION} alone, of ${show(buffers)}, got ${show(first?.writes)} of ${show(first?.buffers)}.`,
    "Define both rules with the same list of buffers.",
  );
}

/** Slices of the rule's buffers for parameter i. The mirror comes after them. */
function withDirection<Options extends BaseOptions>(
  { tensors, group }: PlannedLaunch<Options>,
  i: number,
  direction: Tensor,
): readonly Slice[] {
  return tensors[i]!.toSpliced(group.rule.buffers.length - 1, 0, direction.memorySlice());
}

const unguarded = ({ rewrites }: Pick<PlannedLaunch<never>, "rewrites">) =>
  rewrites.filter(({ rewrite }) => rewrite !== "guard");

/** The scalars of its rewrites: a guard is the last. */
const plainScalars = (main: Pick<PlannedLaunch<never>, "rewrites" | "extraScalars">) =>
  main.extraScalars.slice(0, unguarded(main).length);

/** Launches the first rule with the rewrites of the step. It writes nothing that lasts, so it needs no guard. */
function launchFirst<Options extends BaseOptions>(
  scalarSource: StageLaunch<Options>,
  main: PlannedLaunch<Options>,
): Tensor[] {
  const { rule } = scalarSource;
  const { device, kernel, slots } = main;
  const { dtype, stored } = kernel.spec;
  const { length } = rule.buffers; // and no mirror: the parameter is not written
  const plainly = (format: StoredFormats[number]) => (isRandom(format) ? withoutDraws(format) : format);
  const formats = stored && { stored: stored.slice(0, length).map(plainly) };
  const rewrites = unguarded(main);
  const directions = slots.map(({ param }) => Tensor.empty(param.shape, dtype, device));
  device.launch(
    {
      kind: "rule",
      kernel: device.kernel({ kind: "rule", rule: rewrittenBy(rule, rewrites), dtype, ...formats }),
      tensors: directions.map((direction, i) => withDirection(main, i, direction).slice(0, length)),
      scalars: scalarSource.next(),
    },
    scalarSource,
  );
  for (const { storage } of directions) storage.overwritten();
  return directions;
}

/** Launches a rule of `transform`. */
function launchStage<Options extends BaseOptions>(
  main: PlannedLaunch<Options>,
  rule: Rule,
  tensors: readonly (readonly Tensor[])[],
  constants: Readonly<Record<string, number>> = {},
): void {
  const { device, kernel } = main;
  const { dtype } = kernel.spec as { dtype: ComputeDType };
  const scalarSource = new StageLaunch(rule, main, [], constants);
  device.launch(
    {
      kind: "rule",
      kernel: device.kernel({ kind: "rule", rule, dtype }),
      tensors: tensors.map((list) => list.map((tensor) => tensor.memorySlice())),
      scalars: scalarSource.next(),
    },
    scalarSource,
  );
  for (const name of rule.writes) for (const list of tensors) list[rule.buffers.indexOf(name)]!.storage.overwritten();
}

/** Draws for `transform`, on the host. A replay draws after the step is counted: the first launch knows which it is. */
function drawNormals<Options extends BaseOptions>(
  first: StageLaunch<Options>,
  { shape, dtype, device, size }: Tensor,
  seed: number,
): Tensor {
  const draw = () => narrow(normalsAt(seed, first.counters!.step, size), dtype);
  return upload(draw(), shape, dtype, device, draw);
}

/** Steps of a counter that the traced call has taken before this one. */
const taken = new WeakMap<object, Map<StepCounter, number>>();

/** Compiled functions have a trace for each phase: of the counters as a call finds them, and as many steps on as it has taken before. */
function dependsOnPhase<Options extends BaseOptions>(
  { algorithm, counter, group }: PlannedLaunch<Options>,
  phase: (counters: Counters) => string,
): void {
  const tracer = activeTracer();
  if (tracer === null) return;
  const counts = taken.get(tracer) ?? new Map<StepCounter, number>();
  taken.set(tracer, counts);
  const before = counts.get(counter) ?? 0;
  counts.set(counter, before + 1);
  const next = (counters: Counters) => advanced(algorithm, counters, group.options);
  const traced = phase(next(counter.counters));
  let isAsked = false;
  dependsOn(() => {
    // While it is traced, and once when it is complete, the steps before have been taken.
    if (openTracer() !== null) return traced;
    if (!isAsked) {
      isAsked = true;
      return traced;
    }
    let { counters } = counter;
    for (let i = 0; i <= before; i++) counters = next(counters);
    return phase(counters);
  });
}
