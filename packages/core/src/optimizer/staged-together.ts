/** Numbers that all parameters of a step share: computed once from what `transform` found of each, over all launches. */
import { check, OptError } from "../errors/errors";
import { cast, checkTensor, concat } from "../ops";
import type { Tensor } from "../tensor/tensor";
import { showShape } from "../values/shape";
import type { Algorithm, BaseOptions } from "./algorithm";
import { StagedLaunch } from "./staged-launch";

export interface Together {
  /** Names of `stageScalars` that it gives, each with the state of shape [] that becomes the same number, or null. */
  readonly scalars: Readonly<Record<string, string | null>>;
  /**
   * A tensor of one element under each name of `scalars`, from tensors with a number for each parameter that steps: what `transform`
   * found, in the order of the optimizer's parameters, in float64 where one parameter is, else in float32. It reads no options.
   */
  compute(found: Readonly<Record<string, Tensor>>): Readonly<Record<string, Tensor>>;
}

/** The launches with the numbers that their parameters share. @throws OptError DEVICE_MISMATCH, BAD_ARGUMENT, BAD_SHAPE */
export function allTogether<Options extends BaseOptions>(
  { name }: Algorithm<Options>,
  launches: readonly StagedLaunch<Options>[],
  { scalars, compute }: Together,
): readonly StagedLaunch<Options>[] {
  const [first] = launches;
  if (first === undefined) return launches;
  const devices = new Set(launches.map(({ main }) => main.device));
  check(
    devices.size === 1,
    "DEVICE_MISMATCH",
    name,
    () =>
      `parameters share numbers, so they must be on one device, got ${[...devices].map(({ name }) => name).join(" and ")}.`,
    "Make an optimizer for each device.",
  );
  const made = compute(foundOf(name, launches, Object.keys(first.staged.found ?? {})));
  const shared = Object.fromEntries(
    Object.keys(scalars).map((scalar) => [scalar, checked(name, scalar, made[scalar])]),
  );
  return launches.map(({ main, tensors, staged }) => {
    const states = Object.entries(scalars).flatMap(([scalar, key]) =>
      key === null
        ? []
        : main.slots.map(({ state }) => [state!.tensors.get(key)!, shared[scalar]!.reshape([])] as const),
    );
    return new StagedLaunch(main, tensors, {
      ...staged,
      scalars: { ...staged.scalars, ...shared },
      states: [...(staged.states ?? []), ...states],
    });
  });
}

/** In the order of the parameters, so that sums do not depend on what steps in which launch. */
function foundOf<Options extends BaseOptions>(
  name: string,
  launches: readonly StagedLaunch<Options>[],
  keys: readonly string[],
): Readonly<Record<string, Tensor>> {
  const dtype = launches.some(({ main }) => main.kernel.spec.dtype === "f64") ? "f64" : "f32";
  const placed = launches.flatMap((launch) => launch.main.slots.map(({ number }, i) => ({ launch, i, number })));
  placed.sort((a, b) => a.number - b.number);
  const joined = keys.map((key) => {
    const lists = new Map(
      launches.map((launch) => {
        const list = launch.staged.found?.[key];
        if (list === undefined)
          throw new OptError("BAD_ARGUMENT", `${name} transform`, `must find ${key} in each launch.`);
        return [launch, cast(list, dtype)] as const;
      }),
    );
    return [key, concat(placed.map(({ launch, i }) => lists.get(launch)!.slice(i, i + 1)))] as const;
  });
  return Object.fromEntries(joined);
}

function checked(name: string, scalar: string, given: unknown): Tensor {
  const where = `${name} together`;
  checkTensor(where, given, scalar);
  const { size, shape } = given;
  check(size === 1, "BAD_SHAPE", where, () => `${scalar} must have one element, got shape ${showShape(shape)}.`);
  return given;
}
