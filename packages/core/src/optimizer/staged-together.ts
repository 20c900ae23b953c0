/** Numbers that all parameters of a step share: computed once from what `transform` found of each, over all launches. */
import { check } from "../errors/errors";
import { cast, checkTensor, concat } from "../ops";
import type { Tensor } from "../tensor/tensor";
import { showShape } from "../values/shape";
import type { Algorithm, BaseOptions } from "./algorithm";
import { fromOwners, type Numbers, spread } from "./numbers-of-owners";
import { StagedLaunch } from "./staged-launch";

export interface Together {
  /** The names of what `transform` finds of each parameter. */
  readonly found: readonly string[];
  /** Names of `stageScalars` that it gives, each with the state of shape [] that becomes the same number, or null. */
  readonly scalars: Readonly<Record<string, string | null>>;
  /**
   * A tensor of one element under each name of `scalars`, from tensors with a number for each parameter that steps: what `transform`
   * found, in the order of the optimizer's parameters, in float64 where one parameter is, else in float32. It reads no options.
   */
  compute(found: Readonly<Record<string, Tensor>>): Readonly<Record<string, Tensor>>;
}

/**
 * The launches with the numbers that their parameters share.
 *
 * @param params those of the optimizer: other ranks may step some of them
 * @throws OptError DEVICE_MISMATCH, BAD_ARGUMENT, BAD_SHAPE
 */
export function allTogether<Options extends BaseOptions>(
  { name }: Algorithm<Options>,
  params: readonly Tensor[],
  launches: readonly StagedLaunch<Options>[],
  { found, scalars, compute }: Together,
): readonly StagedLaunch<Options>[] {
  const numbers = params.flatMap((param, number) => ((param.spanOf ?? param).grad === null ? [] : [number]));
  if (numbers.length === 0) return launches;
  const stepping = numbers.map((number) => params[number]!);
  const devices = new Set(stepping.map(({ device }) => device));
  check(
    devices.size === 1,
    "DEVICE_MISMATCH",
    name,
    () =>
      `parameters share numbers, so they must be on one device, got ${[...devices].map(({ name }) => name).join(" and ")}.`,
    "Make an optimizer for each device.",
  );
  const made = compute(fromSteppers(foundOf(found, numbers, stepping, launches), stepping));
  const shared = Object.fromEntries(
    Object.keys(scalars).map((scalar) => [scalar, checked(name, scalar, made[scalar])]),
  );
  return launches.map(({ main, tensors, staged }) => {
    // The state of a divided parameter is its owner's.
    const states = Object.entries(scalars).flatMap(([scalar, key]) =>
      main.slots.flatMap(({ state }) => {
        const kept = key === null ? undefined : state!.tensors.get(key);
        return kept === undefined ? [] : [[kept, shared[scalar]!.reshape([])] as const];
      }),
    );
    return new StagedLaunch(main, tensors, {
      ...staged,
      scalars: { ...staged.scalars, ...shared },
      states: [...(staged.states ?? []), ...states],
    });
  });
}

/** In the order of the parameters, so that sums do not depend on what steps in which launch; 0 for those that other ranks step. */
function foundOf<Options extends BaseOptions>(
  found: readonly string[],
  numbers: readonly number[],
  stepping: readonly Tensor[],
  launches: readonly StagedLaunch<Options>[],
): Numbers {
  const dtype = stepping.some((param) => param.dtype === "f64") ? "f64" : "f32";
  const stepped = launches.flatMap(({ main }) => main.slots.map(({ number }) => number));
  const places = numbers.map((number) => (stepped.includes(number) ? stepped.indexOf(number) : undefined));
  const listOf = (name: string) => concat(launches.map(({ staged }) => cast(staged.found![name]!, dtype)));
  const given = stepped.length === 0 ? undefined : Object.fromEntries(found.map((name) => [name, listOf(name)]));
  return spread(found, places, given, { dtype, device: stepping[0]!.device });
}

/** On all ranks, where each steps some of the parameters. */
function fromSteppers(numbers: Numbers, params: readonly Tensor[]): Numbers {
  const steppers = params.map(({ steppedBy }) => steppedBy);
  const axis = steppers.find((stepper) => stepper !== undefined)?.axis;
  if (axis === undefined) return numbers;
  return fromOwners(
    axis,
    numbers,
    steppers.map((stepper) => stepper?.index ?? null),
  );
}

function checked(name: string, scalar: string, given: unknown): Tensor {
  const where = `${name} together`;
  checkTensor(where, given, scalar);
  const { size, shape } = given;
  check(size === 1, "BAD_SHAPE", where, () => `${scalar} must have one element, got shape ${showShape(shape)}.`);
  return given;
}
