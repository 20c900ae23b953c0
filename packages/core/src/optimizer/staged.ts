/** Steps of several stages: ops between two launches compute what no rule can say of one element (matrix products). */
import type { Scalar, Slice } from "../backend/memory";
import type { Live } from "../device/live";
import { tidy } from "../device/scope";
import { check } from "../errors/errors";
import { show } from "../errors/show";
import { cast, checkTensor } from "../ops";
import { checkReal } from "../ops/check-tensor";
import { isRandom, withoutDraws } from "../rule/rounding";
import type { Rule } from "../rule/rule";
import type { StoredFormats } from "../rule/stored";
import { Tensor } from "../tensor/tensor";
import { sameShape, showShape } from "../values/shape";
import type { BaseOptions, GroupOptions } from "./algorithm";
import { advanced, checkRule } from "./check-rule";
import type { ParameterGroup } from "./group";
import { Optimizer } from "./optimizer";
import type { GroupInput } from "./parameters";
import { type PlannedLaunch, rewrittenBy, scalarsOf } from "./plan";
import { DIRECTION } from "./state/state";

export interface Stages<Options extends BaseOptions> {
  /**
   * Writes the buffer `direction` and nothing else, from the buffers of the algorithm's rule. That rule finds in it what `transform`
   * returned. Its scalars are among the algorithm's.
   */
  rule(options: Options): Rule;
  /** The new direction, of the same shape, in any dtype. */
  transform(direction: Tensor, options: Options): Tensor;
  /** The options that `transform` reads: compiled functions are traced again when one changes. */
  readonly transformedBy: readonly (keyof Options & string)[];
}

/** Base of optimizers whose rule has a last buffer `direction`, for which no state is stored. */
export abstract class StagedOptimizer<Options extends BaseOptions> extends Optimizer<Options> {
  /** What comes before the rule's launch: a constant. */
  protected abstract stages(): Stages<Options>;

  /** @throws OptError UNSUPPORTED for `lazyMode`: stages work on whole parameters; further as `Optimizer` */
  override addGroup(group: GroupInput<Options>): void {
    checkWhole(this.algorithm.name, { ...this.defaults, ...group });
    super.addGroup(group);
  }

  /** @internal */
  protected override get hasStages(): boolean {
    return true;
  }

  /** @internal */
  protected override settingsOf({ options, slots }: ParameterGroup<Options>, rule: Rule): readonly unknown[] {
    const { name: where } = this.algorithm;
    checkWhole(where, options);
    for (const { param } of slots) checkReal(where, param); // a direction has one number for each element
    const stages = this.stages();
    checkStages(where, stages);
    checkRule(this.algorithm, rule, true);
    const first = stages.rule(options);
    checkFirst(where, first, rule);
    return [first, JSON.stringify(stages.transformedBy.map((name) => options[name]))];
  }

  /** @internal */
  protected override directed(launch: PlannedLaunch<Options>): PlannedLaunch<Options>["tensors"] {
    const { options } = launch.group;
    const stages = this.stages();
    const directions = launchFirst(stages.rule(options), launch);
    return directions.map((direction, i) => {
      const transformed = this.#transformed(stages, direction, options);
      if (transformed !== direction) direction.dispose(); // at the end there are those of the whole group
      return withDirection(launch, i, transformed);
    });
  }

  #transformed(stages: Stages<Options>, direction: Tensor, options: Options): Tensor {
    const { name: where } = this.algorithm;
    const { device } = direction;
    const transformed = tidy(() => {
      const result: unknown = stages.transform(direction, options);
      checkTensor(`${where} transform`, result, "the result");
      const elsewhere = () => `the result must be on ${device.name}, got one on ${result.device.name}.`;
      check(result.device === device, "DEVICE_MISMATCH", `${where} transform`, elsewhere, "Move it with to().");
      return cast(result, direction.dtype);
    });
    const { shape } = transformed;
    const problem = () => `transform must keep the shape ${showShape(direction.shape)}, got ${showShape(shape)}.`;
    check(sameShape(shape, direction.shape), "BAD_SHAPE", where, problem);
    return transformed;
  }
}

/** @throws OptError UNSUPPORTED for `lazyMode` */
function checkWhole(where: string, { lazyMode }: GroupOptions): void {
  const problem = () => "lazyMode steps some rows, and this step needs all of a parameter.";
  check(!lazyMode, "UNSUPPORTED", where, problem, "Leave it out: row-sparse gradients are stepped as dense ones.");
}

/** @throws OptError BAD_ARGUMENT */
function checkStages(where: string, stages: unknown): void {
  const { rule, transform, transformedBy } = Object(stages);
  const isWhole = typeof rule === "function" && typeof transform === "function" && Array.isArray(transformedBy);
  const problem = () => `stages() must give { rule, transform, transformedBy }, got ${show(stages)}.`;
  check(isWhole, "BAD_ARGUMENT", where, problem, "Two functions, and the options that the second looks at.");
}

/** @throws OptError BAD_ARGUMENT for a first rule that writes anything but the direction, or has other buffers */
function checkFirst(where: string, first: Rule, { buffers }: Rule): void {
  const fits = String(first?.buffers) === String(buffers) && String(first.writes) === DIRECTION;
  const problem = () =>
    `the first rule must write ${DIRECTION} alone, of ${show(buffers)}, got ${show(first?.writes)} of ${show(first?.buffers)}.`;
  check(fits, "BAD_ARGUMENT", where, problem, "Define both rules with the same list of buffers.");
}

/** Slices of the rule's buffers for parameter i. The mirror comes after them. */
function withDirection<Options extends BaseOptions>(
  { tensors, group }: PlannedLaunch<Options>,
  i: number,
  direction: Tensor,
): readonly Slice[] {
  return tensors[i]!.toSpliced(group.rule.buffers.length - 1, 0, direction.memorySlice());
}

/** The launch of the first rule. Nothing is counted for it. */
class FirstLaunch<Options extends BaseOptions> implements Live {
  constructor(
    private readonly rule: Rule,
    private readonly main: PlannedLaunch<Options>,
    private readonly extraScalars: readonly Scalar[],
  ) {}

  next(): readonly Scalar[] {
    const { algorithm, group, counter } = this.main;
    const { counters: before } = counter;
    const counters = advanced(algorithm, before, group.options);
    return [...scalarsOf(algorithm, group.options, this.rule, counters, before), ...this.extraScalars];
  }

  commit(): void {}
}

/** Launches the first rule with the rewrites of the step. It writes nothing that lasts, so it needs no guard. */
function launchFirst<Options extends BaseOptions>(rule: Rule, main: PlannedLaunch<Options>): Tensor[] {
  const { device, kernel, slots } = main;
  const { dtype, stored } = kernel.spec;
  const { length } = rule.buffers; // and no mirror: the parameter is not written
  const plainly = (format: StoredFormats[number]) => (isRandom(format) ? withoutDraws(format) : format);
  const formats = stored && { stored: stored.slice(0, length).map(plainly) };
  const rewrites = main.rewrites.filter(({ rewrite }) => rewrite !== "guard");
  const live = new FirstLaunch(rule, main, main.extraScalars.slice(0, rewrites.length)); // a guard is the last
  const directions = slots.map(({ param }) => Tensor.empty(param.shape, dtype, device));
  device.launch(
    {
      kind: "rule",
      kernel: device.kernel({ kind: "rule", rule: rewrittenBy(rule, rewrites), dtype, ...formats }),
      tensors: directions.map((direction, i) => withDirection(main, i, direction).slice(0, length)),
      scalars: live.next(),
    },
    live,
  );
  for (const { storage } of directions) storage.overwritten();
  return directions;
}
