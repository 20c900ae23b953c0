/** An optimizer's step as a pure function of tensors: the same rule and scalars, computed by ops that have gradients. */

import { full } from "../create";
import { runsOnce } from "../device/host-code";
import { tidy } from "../device/scope";
import { checkValue } from "../errors/check-value";
import { check } from "../errors/errors";
import { isPlainObject, show } from "../errors/show";
import { applyRule, cast, clone, expand, reshape } from "../ops";
import type { Algorithm, BaseOptions, Counters, GroupOptions } from "../optimizer/algorithm";
import { completeOptions } from "../optimizer/check";
import { advanced, checkRule } from "../optimizer/check-rule";
import { penaltyOf } from "../optimizer/group";
import { checkElementwise } from "../optimizer/modifications/check";
import { algorithmOf, type OptimizerClass } from "../optimizer/optimizer-class";
import { rewritesOf, rewrittenBy } from "../optimizer/plan";
import { stateKeys, storedState } from "../optimizer/state/state";
import type { ParameterStateDict } from "../optimizer/state/state-dict";
import { isPacked } from "../rule/codebook";
import { decode, readBytesSync } from "../tensor/read";
import { Tensor } from "../tensor/tensor";
import { type DType, isFloat } from "../values/dtype";
import { sameShape, showShape } from "../values/shape";
import { Quantity, tensorArithmetic } from "./tensor-arithmetic";

/** Options whose numbers may be tensors of one element, to be differentiated by. */
export type Differentiable<Options> = {
  readonly [Name in keyof Options]: Options[Name] extends number
    ? number | Tensor
    : Options[Name] extends readonly number[]
      ? EachOf<Options[Name]>
      : Options[Name];
};

/** A pair (betas), of which either may be a tensor. */
export type EachOf<List extends readonly number[]> = { readonly [Index in keyof List]: number | Tensor };

/** What a functional optimizer steps: tensors in a list, or by name. */
export type Weights = Iterable<Tensor> | Readonly<Record<string, Tensor>>;

/** One value for each of the weights, in a list or by the same names. */
export type ForEach<Params, Value> =
  Params extends Iterable<Tensor> ? Value[] : { -readonly [Name in keyof Params]: Value };

/** An optimizer without memory of its own, see `functional`. */
export interface Functional<Options> {
  /** The state before the first step, for each parameter under PyTorch's keys. @throws OptError BAD_ARGUMENT, BAD_DTYPE, DISPOSED */
  init<Params extends Weights>(params: Params): ForEach<Params, ParameterStateDict>;
  /**
   * One step. Parameters whose gradient is null are handed back as they are, with their state.
   *
   * @param overrides options of this step (a schedule's learning rate)
   * @throws OptError BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE, BAD_STATE, DISPOSED, DEVICE_MISMATCH; UNSUPPORTED in a compiled function
   */
  update<Params extends Weights>(
    grads: ForEach<Params, Tensor | null>,
    state: ForEach<Params, ParameterStateDict>,
    params: Params,
    overrides?: Partial<Differentiable<Options>> & GroupOptions,
  ): { params: ForEach<Params, Tensor>; state: ForEach<Params, ParameterStateDict> };
}

/**
 * An optimizer's step as a pure function of parameters, gradients, state and options, through which gradients flow: for unrolled
 * optimisation, meta-learning and learned hyperparameters. Nothing is changed in place.
 *
 *     (params, state) after = update(grads, state, params, overrides)
 *
 * The numbers are those of the class, bit for bit. Where options are tensors and parameters float64, NAdam's mu_product and ASGD's
 * eta and mu are not rounded to float32, as PyTorch's are not where float64 is the default.
 * Source: torch.optim's `differentiable=True`.
 *
 * @param optimizer its class: NAdam, AdamW, ...
 * @param options as the class takes them; numbers may be tensors of one element, on the parameters' device
 * @throws OptError BAD_ARGUMENT as the class does; UNSUPPORTED for `clip.norm` and `lazyMode`
 * @example
 * const lr = parameter(0.1);
 * const sgd = functional(SGD, { lr, momentum: 0.9 });
 * let params = [parameter([1, -2])];
 * let state = sgd.init(params);
 * for (let step = 0; step < 3; step++) {
 *   const loss = params[0].pow(2).sum();
 *   const gradients = grad(loss, params, { createGraph: true });
 *   ({ params, state } = sgd.update(gradients, state, params));
 * }
 * params[0].pow(2).sum().backward(); // lr.grad: how the loss after three steps changes with the learning rate
 */
export function functional<Options extends BaseOptions>(
  optimizer: OptimizerClass<Options>,
  options: Partial<Differentiable<Options>> & GroupOptions = {},
): Functional<Options> {
  const algorithm = algorithmOf("functional", optimizer);
  check(
    !("stages" in optimizer.prototype),
    "UNSUPPORTED",
    algorithm.name,
    () => "a step of several stages is not differentiated through.",
    "Use the class.",
  );
  chosen(algorithm, options);
  return {
    init: (params) =>
      tidy(() => {
        const weights = entriesOf(algorithm.name, params);
        const { numbers, given } = chosen(algorithm, options);
        const rule = algorithm.rule(numbers);
        checkRule(algorithm, rule);
        const first = algorithm.initialState?.(numbers) ?? {};
        const learned = algorithm.initialState?.(quantities(given) as unknown as Options) ?? {};
        const made = weights.map(([, param]) => ({
          ...algorithm.initialCounters,
          ...Object.fromEntries(
            stateKeys(rule).map((key) => {
              const dtype = storedState(rule, key, param, numbers, first) as DType;
              const value: unknown = learned[key] ?? 0;
              if (value === "param") return [key, clone(cast(param, dtype))];
              if (value instanceof Quantity) return [key, clone(expand(cast(value.tensor, dtype), param.shape))];
              return [key, full(param.shape, value as number, { dtype, device: param.device })];
            }),
          ),
        }));
        return likewise(params, weights, made as unknown as ParameterStateDict[]);
      }),
    update: (grads, state, params, overrides = {}) =>
      tidy(() => {
        const { name: where } = algorithm;
        runsOnce(where, "count functional steps", "Call update() outside.");
        const weights = entriesOf(where, params);
        const step = new Step(algorithm, chosen(algorithm, options, overrides));
        const [gradients, states] = [listed(where, "grads", grads, weights), listed(where, "state", state, weights)];
        const updated = weights.map(([name, param], i) =>
          step.update(name, param, gradients[i] as Tensor | null, states[i] as ParameterStateDict),
        );
        return {
          params: likewise(
            params,
            weights,
            updated.map(({ param }) => param),
          ),
          state: likewise(
            params,
            weights,
            updated.map(({ state }) => state),
          ),
        };
      }),
  };
}

/** Options of a step: as numbers, for checks and the choice of the rule, and as they were given. */
interface StepOptions<Options> {
  readonly numbers: Options & GroupOptions;
  readonly given: Readonly<Record<string, unknown>>;
}

/** @throws OptError BAD_ARGUMENT, UNSUPPORTED */
function chosen<Options extends BaseOptions>(
  algorithm: Algorithm<Options>,
  options: object,
  overrides: object = {},
): StepOptions<Options> {
  const numeric = (part: object) => (isPlainObject(part) ? mapValues(part, (x) => inEach(x, numberFor)) : part);
  const numbers = completeOptions(
    algorithm,
    completeOptions(algorithm, algorithm.defaults, numeric(options)),
    numeric(overrides),
  );
  check(
    numbers.clip?.norm === undefined,
    "UNSUPPORTED",
    algorithm.name,
    () => "the norm of all gradients is not differentiated through, got clip.norm.",
    "Scale the gradients before.",
  );
  check(
    !isPacked(numbers.stateDType),
    "UNSUPPORTED",
    algorithm.name,
    () => `packed state has no derivative, got stateDType ${numbers.stateDType}.`,
    "Leave it out.",
  );
  checkElementwise(algorithm.name, numbers);
  check(
    !numbers.lazyMode,
    "UNSUPPORTED",
    algorithm.name,
    () => "a functional step takes dense gradients, got lazyMode.",
    "Use the class.",
  );
  const tensors = [options, overrides].flatMap((part) =>
    Object.entries(part).filter(([, value]) => value !== undefined),
  );
  return { numbers, given: { ...(numbers as object), ...Object.fromEntries(tensors) } };
}

const mapValues = (record: object, change: (value: unknown) => unknown) =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));

/** Options of which each tensor is a number of `tensorArithmetic`. */
const quantities = (given: object, dtype?: DType) =>
  mapValues(given, (value) =>
    inEach(value, (each) => {
      if (!(each instanceof Tensor)) return each;
      const scalar = reshape(each, []);
      return new Quantity(dtype === undefined ? scalar : cast(scalar, dtype));
    }),
  );

/** A value, or each of a pair (betas). */
const inEach = (value: unknown, change: (value: unknown) => unknown) =>
  Array.isArray(value) ? value.map(change) : change(value);

/** What a tensor stands for where its device does not answer at once: in the range of every option. */
const UNKNOWN = 0.1;

/** An option as a number. A tensor is never 0: an option that is learned takes part, wherever it begins. */
function numberFor(option: unknown): unknown {
  if (!(option instanceof Tensor)) return option;
  const { shape, size, dtype } = option;
  check(
    size === 1 && isFloat(dtype),
    "BAD_ARGUMENT",
    "functional",
    () => `an option must be a number or a tensor of one, got ${dtype} of shape ${showShape(shape)}.`,
    "For example parameter(0.1).",
  );
  option.checkAlive();
  if (option.device.backend.readSync === undefined) return UNKNOWN;
  const value = decode(option, readBytesSync(option))[0];
  return value === 0 ? Number.MIN_VALUE : value;
}

/** Parameters under their names: those of the record, or their positions. */
function entriesOf(where: string, params: Weights): [string, Tensor][] {
  const isList = typeof params === "object" && params !== null && Symbol.iterator in params;
  checkValue(
    isList || isPlainObject(params),
    where,
    "params",
    "a list or a record of tensors",
    params,
    "For example [w].",
  );
  const entries: [string, Tensor][] = isList
    ? [...params].map((param, i) => [String(i), param])
    : Object.entries(params as Readonly<Record<string, Tensor>>);
  for (const [name, param] of entries) {
    check(
      param instanceof Tensor,
      "BAD_ARGUMENT",
      where,
      () => `parameters must be tensors, got ${show(param)} (${name}).`,
      "Make one with parameter(data).",
    );
    param.checkAlive();
    check(
      param.dtype === "f32" || param.dtype === "f64",
      "BAD_DTYPE",
      where,
      () => `a functional step computes in f32 and f64, got ${param.dtype} (${name}).`,
      `Keep the parameters in f32, and cast them where they are used: w.to("${param.dtype}").`,
    );
  }
  return entries;
}

/** The values that belong to the weights, in their order. @throws OptError BAD_ARGUMENT */
function listed(where: string, what: string, values: unknown, weights: readonly [string, Tensor][]): unknown[] {
  const isObject = typeof values === "object" && values !== null && !(values instanceof Tensor);
  const names = weights.map(([name]) => name);
  const fits =
    isObject && names.every((name) => Object.hasOwn(values, name)) && Object.keys(values).length === names.length;
  const advice = "Pass grad(loss, params), and the state that init or update returned.";
  checkValue(fits, where, what, "given for each parameter", values, advice);
  return names.map((name) => (values as Record<string, unknown>)[name]);
}

function likewise<Params extends Weights, Value>(
  params: Params,
  weights: readonly [string, Tensor][],
  values: readonly Value[],
): ForEach<Params, Value> {
  const result =
    Symbol.iterator in params ? [...values] : Object.fromEntries(weights.map(([name], i) => [name, values[i]]));
  return result as ForEach<Params, Value>;
}

/** Scalars that parameters with equal counters share. */
interface SharedScalars {
  readonly before: Readonly<Record<string, unknown>>;
  readonly dtype: DType;
  readonly after: Readonly<Record<string, unknown>>;
  readonly scalars: Readonly<Record<string, Tensor | number>>;
}

/** One step of all parameters with one choice of options. */
class Step<Options extends BaseOptions> {
  private readonly known: SharedScalars[] = [];

  constructor(
    private readonly algorithm: Algorithm<Options>,
    private readonly options: StepOptions<Options>,
  ) {}

  update(
    name: string,
    param: Tensor,
    grad: Tensor | null,
    state: ParameterStateDict,
  ): { param: Tensor; state: ParameterStateDict } {
    const { algorithm, options } = this;
    const plain = algorithm.rule(options.numbers);
    checkRule(algorithm, plain);
    const keys = stateKeys(plain);
    checkState(algorithm, name, param, state, keys);
    if (grad === null) return { param, state };
    param.checkGradient(`${algorithm.name}: ${name}`, grad);
    const { after, scalars } = this.#advance(param, state);
    const rewrites = rewritesOf(options.numbers, penaltyOf(options.numbers, name));
    const rule = rewrittenBy(plain, rewrites);
    const buffers = Object.fromEntries(
      plain.buffers.map((buffer, i) => [buffer, i === 0 ? param : i === 1 ? grad : (state[keys[i - 2]!] as Tensor)]),
    );
    const further = rule.scalars.slice(plain.scalars.length).map((name, k) => [name, rewrites[k]!.by]);
    const values = applyRule(rule, buffers, { ...scalars, ...Object.fromEntries(further) });
    const next = keys.map((key, k) => [key, values[plain.buffers[k + 2]!] ?? state[key]]);
    return {
      param: values[plain.buffers[0]!]!,
      state: { ...after, ...Object.fromEntries(next) } as ParameterStateDict,
    };
  }

  /** Counters and scalars of the step, computed once for parameters of one dtype that have counted the same. */
  #advance(param: Tensor, state: ParameterStateDict): SharedScalars {
    const { algorithm, options, known } = this;
    const { device, dtype } = param;
    const before = Object.fromEntries(Object.keys(algorithm.initialCounters).map((name) => [name, state[name]]));
    const found = known.find(
      (each) => each.dtype === dtype && Object.keys(before).every((name) => Object.is(each.before[name], before[name])),
    );
    if (found !== undefined) return found;
    const compute = device.backend.dtypes.includes("f64") ? "f64" : "f32";
    const plainValue = (value: unknown) => (value instanceof Quantity ? value.tensor : value);
    const given = quantities(options.given, compute) as unknown as Options;
    const isLearned = Object.values(options.given)
      .flat()
      .some((value) => value instanceof Tensor);
    const arithmetic = tensorArithmetic(dtype === "f32" || !isLearned);
    const counters = quantities(before, compute) as Counters;
    const isNumber = (value: unknown) => value instanceof Quantity || Number.isFinite(value);
    const after = advanced(algorithm, counters, given, arithmetic, isNumber);
    const scalars = algorithm.scalars(given, after, arithmetic, counters);
    const made = {
      before,
      dtype,
      after: mapValues(after, plainValue),
      scalars: mapValues(scalars, plainValue) as Record<string, Tensor | number>,
    };
    known.push(made);
    return made;
  }
}

/** @throws OptError BAD_STATE, DISPOSED */
function checkState<Options extends BaseOptions>(
  { name: where, initialCounters }: Algorithm<Options>,
  name: string,
  param: Tensor,
  state: ParameterStateDict,
  keys: readonly string[],
): void {
  const advice = "Pass what init or update returned for the same options.";
  check(
    isPlainObject(state),
    "BAD_STATE",
    where,
    () => `${name}: the state must be an object, got ${show(state)}.`,
    advice,
  );
  for (const key of Object.keys(initialCounters)) {
    const value = state[key];
    const fits = typeof value === "number" || (key !== "step" && value instanceof Tensor);
    check(fits, "BAD_STATE", where, () => `${name}: ${key} must be a number, got ${show(value)}.`, advice);
  }
  for (const key of keys) {
    const value = state[key];
    check(
      value instanceof Tensor,
      "BAD_STATE",
      where,
      () => `${name}: needs the tensor ${key}, got ${show(value)}.`,
      advice,
    );
    value.checkAlive();
    check(
      sameShape(value.shape, param.shape),
      "BAD_STATE",
      where,
      () => `${name}: ${key} must have shape ${showShape(param.shape)}, got ${showShape(value.shape)}.`,
      advice,
    );
  }
}
