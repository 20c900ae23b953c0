/** The launches of a rule after stages: with the directions, scalars and state that these computed. */
import type { Slice } from "../backend/memory";
import type { ScalarSource } from "../device/scalar-source";
import { check } from "../errors/errors";
import { show } from "../errors/show";
import { cast, checkTensor } from "../ops";
import { defineRule } from "../rule/rule";
import { Tensor } from "../tensor/tensor";
import type { ComputeDType } from "../values/dtype";
import { sameShape, showShape } from "../values/shape";
import type { Algorithm, BaseOptions } from "./algorithm";
import { OneOf, ownScalarsOf } from "./own-scalars";
import { type PlannedLaunch, rewrittenBy } from "./plan";

/** What `transform` returns. */
export interface Staged {
  /** The new direction of each parameter, of its shape, in any dtype. */
  readonly directions: readonly Tensor[];
  /** Under each name of `stageScalars` a number for each parameter: a list, or a tensor. */
  readonly scalars?: Readonly<Record<string, readonly number[] | Tensor>>;
  /** What `together` needs to know of each parameter: under each of its names a tensor with a number for each. */
  readonly found?: Readonly<Record<string, Tensor>>;
  /** State that has shapes of its own, and what it becomes with the step. */
  readonly states?: readonly (readonly [state: Tensor, next: Tensor])[];
}

export const RENEW = /* @__PURE__ */ defineRule({
  name: "renew",
  buffers: ["state", "next"],
  scalars: [],
  update: ({ next }) => ({ state: next }),
});

/**
 * @param shared those of `stageScalars` that all parameters share: `together` gives them
 * @param names what `together` needs to know of each parameter
 * @throws OptError BAD_ARGUMENT, BAD_SHAPE, DEVICE_MISMATCH for what `transform` may not return
 */
export function checkStaged<Options extends BaseOptions>(
  { name, stageScalars = [] }: Algorithm<Options>,
  shared: readonly string[],
  names: readonly string[],
  before: readonly Tensor[],
  staged: Staged,
): void {
  const where = `${name} transform`;
  const { directions, scalars = {}, found = {}, states = [] } = Object(staged) as Staged;
  check(
    Array.isArray(directions) && directions.length === before.length,
    "BAD_ARGUMENT",
    where,
    () => `must return { directions } with one for each of ${before.length}, got ${show(staged)}.`,
  );
  for (const [old, next] of [...directions.map((direction, i) => [before[i]!, direction] as const), ...states]) {
    checkTensor(where, next, "a result");
    const { device, shape } = old;
    check(
      next.device === device,
      "DEVICE_MISMATCH",
      where,
      () => `results must be on ${device.name}, got one on ${next.device.name}.`,
      "Move it with to().",
    );
    check(
      sameShape(next.shape, shape),
      "BAD_SHAPE",
      where,
      () => `results must keep the shape ${showShape(shape)}, got ${showShape(next.shape)}.`,
    );
  }
  const own = stageScalars.filter((scalar) => !shared.includes(scalar));
  const lists = [
    ...own.map((scalar) => [scalar, scalars[scalar]] as const),
    ...names.map((name) => [name, found[name]] as const),
  ];
  for (const [scalar, given] of lists) {
    const length = given instanceof Tensor ? given.size : given?.length;
    check(
      length === before.length,
      "BAD_ARGUMENT",
      where,
      () => `must give ${scalar} for each of ${before.length} parameters, got ${show(given)}.`,
      "A list of numbers, or a tensor.",
    );
  }
}

export class StagedLaunch<Options extends BaseOptions> {
  /** @param tensors the slices of each parameter, with its direction */
  constructor(
    readonly main: PlannedLaunch<Options>,
    readonly tensors: readonly (readonly Slice[])[],
    readonly staged: Staged,
  ) {}

  launch(scalarSource: ScalarSource): void {
    const { main, tensors } = this;
    const { device, kernel, scalars, group } = main;
    const { scalars: own = {} } = this.staged;
    const { dtype } = kernel.spec as { dtype: ComputeDType };
    this.#renew();
    if (Object.keys(own).length === 0) device.launch({ kind: "rule", kernel, tensors, scalars }, scalarSource);
    else {
      tensors.forEach((slices, i) => {
        const places = ownScalarsOf(group.rule, dtype, own, i);
        const one = new OneOf(scalarSource, places, i === tensors.length - 1);
        device.launch({ kind: "rule", kernel, tensors: [slices], scalars: one.next(scalars) }, one);
      });
    }
    main.launched();
  }

  /** Writes the state that stages computed, in one launch, unless the step is skipped. */
  #renew(): void {
    const { device, kernel, rewrites, extraScalars } = this.main;
    const { states } = this.staged;
    if (!states?.length) return;
    const { dtype } = kernel.spec as { dtype: ComputeDType };
    const guards = rewrites.filter(({ rewrite }) => rewrite === "guard"); // the last of them
    device.launch({
      kind: "rule",
      kernel: device.kernel({ kind: "rule", rule: rewrittenBy(RENEW, guards), dtype }),
      tensors: states.map(([state, next]) => [state.memorySlice(), cast(next, dtype).memorySlice()]),
      scalars: extraScalars.slice(extraScalars.length - guards.length),
    });
    for (const [{ storage }] of states) storage.overwritten();
  }
}
