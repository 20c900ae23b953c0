/** Checks of options that most optimizers have. */
import { checkValue } from "../errors/check-value";
import { check } from "../errors/errors";
import { checkOptions } from "../errors/options";
import { isPlainObject, show } from "../errors/show";
import type { Algorithm, BaseOptions, GroupOptions } from "./algorithm";
import { checked } from "./gradients/regularizer";
import { checkModifications } from "./modifications/check";
import { statePacking, stochasticRounding } from "./state/state";

/** A number >= 0: infinity is allowed, NaN is not. @throws OptError BAD_ARGUMENT */
export function checkNotNegative(where: string, name: string, value: unknown): void {
  const holds = typeof value === "number" && value >= 0;
  checkValue(holds, where, name, "a number >= 0", value, "Pass a number from 0 on.");
}

/** Numbers in [0, 1), as many as `defaults`. @throws OptError BAD_ARGUMENT */
export function checkBetas(where: string, betas: unknown, defaults: readonly number[] = [0.9, 0.999]): void {
  const { length } = defaults;
  const advice = `The default is [${defaults.join(", ")}].`;
  checkValue(Array.isArray(betas) && betas.length === length, where, "betas", `${length} numbers`, betas, advice);
  for (let i = 0; i < length; i++) {
    const beta = betas[i];
    checkValue(typeof beta === "number" && beta >= 0 && beta < 1, where, `betas[${i}]`, "in [0, 1)", beta, advice);
  }
}

/** True or false. @throws OptError BAD_ARGUMENT */
export function checkBoolean(where: string, name: string, value: unknown): void {
  checkValue(typeof value === "boolean", where, name, "true or false", value, "Leave it out for the default.");
}

/**
 * A group's options before they are used. lr may be below 0: schedules end there by rounding, and PyTorch steps by it. An lr that a
 * program passes to a constructor may not.
 *
 * @throws OptError BAD_ARGUMENT
 */
export function checkGroup<Options extends BaseOptions>(
  algorithm: Algorithm<Options>,
  options: Options & GroupOptions,
): void {
  const { name: where } = algorithm;
  const { lr, maximize, regularizer } = options;
  checkValue(Number.isFinite(lr), where, "lr", "a number", lr, "Look at the schedule.");
  checkBoolean(where, "maximize", maximize);
  const { clip = null } = options;
  if (clip !== null) {
    checkOptions(`${where} clip`, clip, { norm: "number", value: "number" });
    for (const [name, limit] of Object.entries(clip)) {
      if (limit !== undefined) checkNotNegative(where, `clip.${name}`, limit);
    }
  }
  const { stateDType, lazyMode = false } = options;
  checkBoolean(where, "lazyMode", lazyMode);
  const stored: readonly unknown[] = [undefined, "f32", "bf16", ...(statePacking.names ?? [])];
  const dtypes = '"f32", "bf16" or, after enableQ8(), "bf16x" or "q8"';
  checkValue(stored.includes(stateDType), where, "stateDType", dtypes, stateDType, "The default is f32.");
  statePacking.check?.(where, options);
  const { stochasticRounding: option = false } = options;
  const fits = stochasticRounding.fits?.(where, option) ?? option === false;
  const kinds = "true, false or { seed }";
  checkValue(fits, where, "stochasticRounding", kinds, option, "It asks for enableStochasticRounding() before.");
  algorithm.validate(options);
  checkModifications(algorithm, options);
  if (regularizer !== undefined && regularizer !== null && typeof regularizer !== "function") checked(regularizer);
}

/** The `GroupOptions` of every algorithm, not set. */
export const UNSET: Readonly<Record<keyof GroupOptions, undefined>> = {
  regularizer: undefined,
  clip: undefined,
  stateDType: undefined,
  lazyMode: undefined,
  stochasticRounding: undefined,
  cautious: undefined,
  decay: undefined,
  mars: undefined,
  hyperball: undefined,
  centralize: undefined,
};

/**
 * Defaults and overrides together, validated.
 *
 * @throws OptError BAD_ARGUMENT
 */
export function completeOptions<Options extends BaseOptions>(
  algorithm: Algorithm<Options>,
  defaults: Options & GroupOptions,
  overrides: object,
  besides: readonly string[] = [],
): Options & GroupOptions {
  const { name: where, fixed } = algorithm;
  const known = Object.keys({ ...algorithm.defaults, ...UNSET });
  checkOptions(where, overrides, Object.fromEntries([...known, ...besides].map((name) => [name, "any"])));
  const given = Object.entries(overrides).filter(([name, value]) => known.includes(name) && value !== undefined);
  const options = { ...defaults, ...Object.fromEntries(given) } as Options;
  for (const [name, value] of Object.entries(fixed ?? {})) {
    check(
      options[name as keyof Options] === value,
      "BAD_ARGUMENT",
      where,
      () => `${name} must be ${value}, got ${show(options[name as keyof Options])}.`,
      "Use the optimizer without it.",
    );
  }
  checkNotNegative(where, "lr", options.lr);
  checkGroup(algorithm, options);
  return ownOptions(options);
}

/** The options that are set, with copies of their arrays (betas) and objects (clip). */
export function ownOptions<Options extends object>(options: Options): Options {
  const own = Object.entries(options).flatMap(([key, value]) =>
    value === undefined ? [] : [[key, Array.isArray(value) ? [...value] : isPlainObject(value) ? { ...value } : value]],
  );
  return Object.fromEntries(own) as Options;
}
