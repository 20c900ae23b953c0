/** Steps of several stages: what no rule can say of one element (matrix products) is computed by ops between two launches. */
import type { Slice } from "../backend/memory";
import type { Repeated } from "../device/recorder";
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
import type { Algorithm, BaseOptions, Counters, GroupOptions } from "./algorithm";
import { advanced } from "./check-rule";
import { ruleAround, scalarsAround, stepsAround } from "./gradients/around";
import { Optimizer } from "./optimizer";
import type { GroupInput } from "./parameters";
import { type Bucket, planUpdates, scalarsOf, type Update } from "./plan";
import { DIRECTION } from "./state/state";

export interface Stages<Options extends BaseOptions> {
  /**
   * Writes the buffer `direction` and nothing else, from the buffers that the algorithm's rule has, which finds there what `transform`
   * made of it. Its scalars are among the algorithm's.
   */
  rule(options: Options): Rule;
  /** The new direction, of the same shape, in any dtype. */
  transform(direction: Tensor, options: Options): Tensor;
  /** What `transform` depends on: a replay refuses other values. */
  readonly transformedBy: readonly (keyof Options & string)[];
}

/** Base of optimizers whose rule has a last buffer `direction`, which no state is kept for. */
export abstract class StagedOptimizer<Options extends BaseOptions> extends Optimizer<Options> {
  /** What comes before the rule's launch: a constant. */
  protected abstract stages(): Stages<Options>;

  /** @throws OptError UNSUPPORTED for `lazyMode`: stages work on whole parameters; further as `Optimizer` */
  override addGroup(group: GroupInput<Options>): void {
    checkWhole(this.algorithm.name, { ...this.defaults, ...group });
    super.addGroup(group);
  }

  /** @internal Nothing that lasts is written before all directions are there. */
  protected override readonly plan: typeof planUpdates<Options> = (algorithm, options, slots, around): Update[] => {
    checkWhole(algorithm.name, options);
    for (const { param } of slots) checkReal(algorithm.name, param); // a direction has one number for each element
    const stages = this.stages();
    checkStages(algorithm.name, stages);
    return planUpdates(algorithm, options, slots, around, [], true).map((update) =>
      stagedUpdate(stages, algorithm, options, update),
    );
  };
}

/** @throws OptError UNSUPPORTED for `lazyMode` */
function checkWhole(where: string, { lazyMode }: GroupOptions): void {
  const problem = () => "lazyMode steps some rows, and this step needs all of a parameter.";
  check(!lazyMode, "UNSUPPORTED", where, problem, "Leave it out: row-sparse gradients are stepped as dense ones.");
}

/** The launch of the algorithm's rule, with the directions of its parameters. */
function stagedUpdate<Options extends BaseOptions>(
  stages: Stages<Options>,
  algorithm: Algorithm<Options>,
  options: Options & GroupOptions,
  update: Update,
): Update {
  const { bucket } = update;
  const { name: where } = algorithm;
  const settings = () => JSON.stringify(stages.transformedBy.map((name) => options[name]));
  const used = settings();
  const first = stages.rule(options);
  checkFirst(where, first, bucket.plain);
  const directions = launchFirst(first, algorithm, options, update);
  const tensors = directions.map((direction, i) => {
    const transformed = tidy(() => {
      const result: unknown = stages.transform(direction, options);
      checkTensor(`${where} transform`, result, "the result");
      const elsewhere = () => `the result must be on ${bucket.device.name}, got one on ${result.device.name}.`;
      check(result.device === bucket.device, "DEVICE_MISMATCH", `${where} transform`, elsewhere, "Move it with to().");
      return cast(result, direction.dtype);
    });
    const { shape } = transformed;
    const problem = () => `transform must keep the shape ${showShape(direction.shape)}, got ${showShape(shape)}.`;
    check(sameShape(shape, direction.shape), "BAD_SHAPE", where, problem);
    if (transformed !== direction) direction.dispose(); // a group's directions are all there in the end
    return withDirection(bucket, i, transformed);
  });
  const checkSettings = () => {
    const problem = () => `${stages.transformedBy.join(", ")} were set that it does not cover.`;
    check(settings() === used, "BAD_STATE", where, problem, "Record the step again.");
  };
  const repeated = (update: Update): Repeated => {
    const counting = bucket.repeated(update);
    return {
      recorded: () => counting.recorded(),
      check() {
        checkSettings();
        counting.check();
      },
      renew: () => counting.renew(),
      undo: () => counting.undo(),
      launched: () => counting.launched(),
    };
  };
  return { ...update, bucket: { ...bucket, tensors, repeated } };
}

/** @throws OptError BAD_ARGUMENT */
function checkStages(where: string, stages: unknown): void {
  const { rule, transform, transformedBy } = Object(stages);
  const isWhole = typeof rule === "function" && typeof transform === "function" && Array.isArray(transformedBy);
  const problem = () => `stages() must give { rule, transform, transformedBy }, got ${show(stages)}.`;
  check(isWhole, "BAD_ARGUMENT", where, problem, "Two functions, and the options that the second looks at.");
}

/** @throws OptError BAD_ARGUMENT for a first rule that would write what lasts, or find other buffers than it names */
function checkFirst(where: string, first: Rule, { buffers }: Rule): void {
  const fits = String(first?.buffers) === String(buffers) && String(first.writes) === DIRECTION;
  const problem = () =>
    `the first rule must write ${DIRECTION} alone, of ${show(buffers)}, got ${show(first?.writes)} of ${show(first?.buffers)}.`;
  check(fits, "BAD_ARGUMENT", where, problem, "Define both rules with the same list of buffers.");
}

/** Slices of the rule's buffers for parameter i; what mirrors it comes after them. */
function withDirection({ tensors, plain }: Bucket, i: number, direction: Tensor): readonly Slice[] {
  return tensors[i]!.toSpliced(plain.buffers.length - 1, 0, direction.memorySlice());
}

/** Launches the first rule. What a step does around its rule is done here too, but for the guard: nothing that lasts is written. */
function launchFirst<Options extends BaseOptions>(
  rule: Rule,
  algorithm: Algorithm<Options>,
  options: Options & GroupOptions,
  { bucket, counters }: Update,
): Tensor[] {
  const { device, kernel, slots, around, regularizer } = bucket;
  const { dtype, stored } = kernel.spec;
  const { length } = rule.buffers; // and no mirror: the parameter is not written
  const plainly = (format: StoredFormats[number]) => (isRandom(format) ? withoutDraws(format) : format);
  const formats = stored && { stored: stored.slice(0, length).map(plainly) };
  const steps = stepsAround(around, options, regularizer).filter(({ rewrite }) => rewrite !== "guard");
  const fixed = scalarsAround(steps, dtype);
  const scalarsAt = (at: Counters) => [...scalarsOf(algorithm, options, rule, at), ...fixed];
  const directions = slots.map(({ param }) => Tensor.empty(param.shape, dtype, device));
  device.launch(
    {
      kind: "rule",
      kernel: device.kernel({ kind: "rule", rule: ruleAround(rule, steps), dtype, ...formats }),
      tensors: directions.map((direction, i) => withDirection(bucket, i, direction).slice(0, length)),
      scalars: scalarsAt(counters),
    },
    () => ({
      recorded() {},
      check() {},
      renew: () => scalarsAt(advanced(algorithm, bucket.counting.now, options)),
      undo() {},
      launched() {},
    }),
  );
  for (const { storage } of directions) storage.overwritten();
  return directions;
}
