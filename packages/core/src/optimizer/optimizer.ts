/** The optimizer loop: groups, state, hooks and one launch per group. Algorithms supply a rule and its scalars. */
import { enableGrad, noGrad } from "../autograd";
import type { Slice } from "../backend/backend";
import type { Device } from "../device";
import { OptError } from "../errors";
import { cast, fillInPlace } from "../ops";
import type { Rule } from "../rule/rule";
import { tidy } from "../scope";
import { sameShape, showShape } from "../shape";
import type { Tensor } from "../tensor";
import type { Algorithm, BaseOptions, Counters, GroupOptions } from "./algorithm";
import { type GroupInput, type OptimizerInput, toGroups, toParameters } from "./parameters";
import { checked, PENALTY, type Regularizer, regularized } from "./regularizer";
import { completeState, type ParameterState, stateDType, stateKeys, steppedParameter } from "./state";
import {
  checkParameterState,
  copyParameterState,
  matchNames,
  type OptimizerState,
  parameterStateDict,
} from "./state-dict";

/** A group of parameters with its own options, which may be changed between steps. */
export type Group<Options> = Options &
  GroupOptions & { readonly params: readonly Tensor[]; readonly names: readonly string[] };

type HookName = "beforeStep" | "afterStep";
type Hook<Options extends BaseOptions> = (optimizer: Optimizer<Options>) => void;

/** Parameters that one launch updates: they share everything but their memory. */
interface Bucket {
  readonly device: Device;
  readonly dtype: "f32" | "f64";
  readonly rule: Rule;
  readonly scalars: readonly number[];
  readonly params: Tensor[];
}

/**
 * Base of all optimizers. Behaves as torch.optim.Optimizer, and is stricter: group overrides are validated, duplicates are errors,
 * loaded state is copied, and whatever is refused is refused before anything has changed.
 */
export abstract class Optimizer<Options extends BaseOptions> {
  readonly groups: readonly Group<Options>[] = [];
  private readonly states = new Map<Tensor, ParameterState>();
  private readonly algorithm: Algorithm<Options>;
  private readonly defaults: Options;
  private readonly hooks: Record<HookName, Set<Hook<Options>>> = { beforeStep: new Set(), afterStep: new Set() };

  /** What the subclass computes: a constant. */
  protected abstract define(): Algorithm<Options>;

  /**
   * @param params tensors, [name, tensor] pairs, or groups `{ params, ...overrides }`
   * @throws OptError BAD_ARGUMENT (option out of range, empty list, unknown option), DUPLICATE, BAD_DTYPE, DISPOSED
   */
  constructor(params: OptimizerInput<Options>, options: Partial<Options> & GroupOptions = {}) {
    this.algorithm = this.define();
    const { name, defaults } = this.algorithm;
    this.defaults = this.complete(defaults, options);
    for (const group of toGroups<Options>(name, params)) this.addGroup(group);
  }

  /** Adds parameters with options of their own. @throws OptError as the constructor does; nothing is added then */
  addGroup({ params, ...overrides }: GroupInput<Options>): void {
    const { name: where } = this.algorithm;
    const options = this.complete(this.defaults, overrides as Partial<Options>);
    const known = new Set(this.groups.flatMap((group) => group.params));
    const knownNames = new Set(this.groups.flatMap((group) => group.names));
    const parameters = toParameters(where, params);
    const names = parameters.map(({ name, tensor }, i) => {
      const unique = name ?? String(known.size);
      if (known.has(tensor)) {
        throw new OptError(
          "DUPLICATE",
          where,
          `a parameter must occur once, got ${unique} (number ${i}) again.`,
          "Tied weights are listed once.",
        );
      }
      if (knownNames.has(unique)) {
        throw new OptError(
          "DUPLICATE",
          where,
          `parameter names must differ, got "${unique}" twice.`,
          "Pass model.namedParameters().",
        );
      }
      known.add(tensor);
      knownNames.add(unique);
      return unique;
    });
    const group = { ...options, params: parameters.map(({ tensor }) => tensor), names } as Group<Options>;
    (this.groups as Group<Options>[]).push(group);
  }

  /** Defaults and overrides together, validated. */
  private complete(defaults: Options, overrides: Partial<Options> & GroupOptions): Options {
    const { name: where, fixed } = this.algorithm;
    const known = Object.keys(this.algorithm.defaults);
    const options = { ...defaults } as Record<string, unknown>;
    for (const [key, value] of Object.entries(overrides)) {
      if (!known.includes(key) && key !== "regularizer") {
        throw new OptError(
          "BAD_ARGUMENT",
          where,
          `there is no option ${key}.`,
          `Options: ${[...known, "regularizer"].join(", ")}.`,
        );
      }
      if (value !== undefined) options[key] = value;
    }
    for (const [key, value] of Object.entries(fixed ?? {})) {
      if (options[key] !== value)
        throw new OptError(
          "BAD_ARGUMENT",
          where,
          `${key} is always ${value}, got ${options[key]}.`,
          "Use the optimizer without it.",
        );
    }
    this.validate(options as unknown as Options);
    return options as unknown as Options;
  }

  private validate(options: Options & GroupOptions): void {
    this.algorithm.validate(options);
    if (options.regularizer && typeof options.regularizer !== "function") checked(options.regularizer);
  }

  /**
   * One update of every parameter that has a gradient; the others are left alone and do not count the step.
   *
   * @param closure recomputes the loss and its gradients first; its result is returned
   * @throws OptError BAD_ARGUMENT if a group's options were set out of range; BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH, DISPOSED for
   * gradients that do not fit; OUT_OF_MEMORY. Nothing has changed then.
   */
  step(): void;
  step<Loss>(closure: () => Loss): Loss;
  step<Loss>(closure?: () => Loss): Loss | undefined {
    for (const hook of this.hooks.beforeStep) hook(this);
    const loss = closure === undefined ? undefined : enableGrad(closure);
    noGrad(() => tidy(() => this.update()));
    for (const hook of this.hooks.afterStep) hook(this);
    return loss;
  }

  private update(): void {
    const active = this.groups.map((group) => {
      this.validate(group);
      return group.params.filter((param) => this.checkGradient(param));
    });
    this.groups.forEach((group, g) => {
      completeState(active[g]!, stateKeys(this.algorithm.rule(group)), this.states, this.algorithm.initialCounters);
    });
    this.groups.forEach((group, g) => {
      for (const bucket of this.buckets(group, active[g]!)) this.launch(bucket);
    });
  }

  /** True if the parameter has a gradient that fits. */
  private checkGradient(param: Tensor): boolean {
    const { grad } = param;
    if (grad === null) return false;
    const { name } = this.algorithm;
    param.memorySlice();
    grad.memorySlice();
    if (!sameShape(grad.shape, param.shape)) {
      throw new OptError(
        "BAD_SHAPE",
        name,
        `a gradient must have its parameter's shape ${showShape(param.shape)}, got ${showShape(grad.shape)}.`,
        "Reshape it.",
      );
    }
    return true;
  }

  /** Splits a group where parameters differ in what a launch has in common, and counts the step. */
  private buckets(group: Group<Options>, params: readonly Tensor[]): Iterable<Bucket> {
    const { algorithm } = this;
    const advanced = new Map<Counters, Counters>();
    const buckets = new Map<string, Bucket>();
    const numbers = new Map<object, number>(); // stands for devices and counters in keys
    const numberOf = (object: object) => {
      const number = numbers.get(object) ?? numbers.size;
      numbers.set(object, number);
      return number;
    };
    const nameOf =
      typeof group.regularizer === "function"
        ? new Map(group.params.map((param, i) => [param, group.names[i]!]))
        : undefined;
    for (const param of params) {
      const state = this.states.get(param)!;
      const counters = advanced.get(state.counters) ?? algorithm.advance(state.counters, group);
      advanced.set(state.counters, counters);
      const regularizer = regularizerOf(group, nameOf?.get(param));
      const dtype = stateDType(param);
      const penalty = regularizer === null ? "" : `${regularizer.kind} ${regularizer.coefficient}`;
      const key = `${numberOf(counters)} ${numberOf(param.device)} ${dtype} ${penalty}`;
      let bucket = buckets.get(key);
      if (bucket === undefined) {
        bucket = { device: param.device, dtype, ...this.ruleAndScalars(group, counters, regularizer), params: [] };
        buckets.set(key, bucket);
      }
      bucket.params.push(param);
    }
    for (const param of params) {
      const state = this.states.get(param)!;
      state.counters = advanced.get(state.counters)!;
    }
    return buckets.values();
  }

  private ruleAndScalars(
    group: Group<Options>,
    counters: Counters,
    regularizer: Regularizer | null,
  ): Pick<Bucket, "rule" | "scalars"> {
    const plain = this.algorithm.rule(group);
    const rule = regularizer === null ? plain : regularized(plain, regularizer.kind);
    const values: Record<string, number> = { ...this.algorithm.scalars(group, counters) };
    // The rule negates the gradient when it climbs; the penalty must still pull towards zero.
    if (regularizer !== null) values[PENALTY] = group.maximize ? -regularizer.coefficient : regularizer.coefficient;
    return { rule, scalars: rule.scalars.map((name) => values[name]!) };
  }

  private launch({ device, dtype, rule, scalars, params }: Bucket): void {
    const keys = stateKeys(rule);
    const masters: [Tensor, Tensor][] = [];
    const tensors = params.map((param): Slice[] => {
      const state = this.states.get(param)!;
      const stepped = steppedParameter(param, state);
      if (stepped !== param) masters.push([stepped, param]);
      const slices = [stepped.memorySlice(), cast(param.grad!, dtype).memorySlice()];
      for (const key of keys) slices.push(state.tensors.get(key)!.memorySlice());
      return slices;
    });
    device.launch({ kind: "rule", kernel: device.kernel({ kind: "rule", rule, dtype }), tensors, scalars });
    for (const [master, param] of masters) cast(master, param.dtype, param);
  }

  /** Clears all gradients: to null, or to zeros in place. Gradients made by backward are freed; clone one to keep it. */
  zeroGrad({ setToNull = true }: { setToNull?: boolean } = {}): void {
    for (const { params } of this.groups) {
      for (const param of params) {
        if (setToNull) param.clearGradient();
        else if (param.grad !== null) fillInPlace(param.grad, 0);
      }
    }
  }

  /** Calls `hook` before or after every step. Returns what removes it. */
  on(event: HookName, hook: Hook<Options>): () => void {
    const hooks = this.hooks[event];
    if (hooks === undefined)
      throw new OptError(
        "BAD_ARGUMENT",
        this.algorithm.name,
        `events are beforeStep and afterStep, got ${event}.`,
        "Use one of them.",
      );
    hooks.add(hook);
    return () => {
      hooks.delete(hook);
    };
  }

  /** Options by group and state by parameter name, with PyTorch's keys. Tensors are the live ones. Only stepped parameters have state. */
  stateDict(): OptimizerState {
    const state: OptimizerState["state"] = {};
    const groups = this.groups.map(({ params, names, ...options }) => {
      params.forEach((param, i) => {
        const own = this.states.get(param);
        if (own !== undefined && own.counters.step > 0) state[names[i]!] = parameterStateDict(own);
      });
      const { regularizer, ...plain } = options as Group<Options>;
      const penalty = typeof regularizer === "object" && regularizer !== null ? { regularizer } : {};
      return { ...plain, ...penalty, params: [...names] };
    });
    return { groups, state } as OptimizerState;
  }

  /**
   * Takes over options and state: groups by position, parameters by name (by position where names are numbers).
   * State is copied, and cast to its parameter's dtype and device; saved options replace the present ones.
   *
   * @throws OptError BAD_STATE if it does not fit. Nothing has changed then.
   */
  loadStateDict(saved: OptimizerState): void {
    const { name: where, fixed, initialCounters } = this.algorithm;
    const matched = matchNames(where, this.groups, saved);
    const options = this.groups.map((group, g) => {
      const loaded = Object.fromEntries(
        Object.keys(this.defaults).map((key) => [key, saved.groups[g]![key] ?? group[key as keyof Options]]),
      );
      const complete = {
        ...loaded,
        regularizer: saved.groups[g]!.regularizer ?? group.regularizer,
        ...fixed,
      } as unknown as Options & GroupOptions;
      try {
        this.validate(complete);
      } catch (cause) {
        throw new OptError(
          "BAD_STATE",
          where,
          `group ${g} of the state has bad options: ${(cause as Error).message}`,
          "",
          { cause },
        );
      }
      return complete;
    });
    const plan: { param: Tensor; entry: OptimizerState["state"][string]; keys: string[] }[] = [];
    this.groups.forEach(({ params }, g) => {
      const keys = stateKeys(this.algorithm.rule(options[g]!));
      for (const param of params) {
        const entry = saved.state[matched.get(param)!];
        if (entry === undefined) continue;
        checkParameterState(where, matched.get(param)!, param, entry, keys, initialCounters);
        plan.push({ param, entry, keys });
      }
    });
    const loaded = new Map(
      plan.map(({ param, entry, keys }) => [param, copyParameterState(param, entry, keys, initialCounters)]),
    );
    shareCounters(loaded.values());
    for (const state of this.states.values()) for (const tensor of state.tensors.values()) tensor.dispose();
    this.states.clear();
    for (const [param, state] of loaded) this.states.set(param, state);
    this.groups.forEach((group, g) => {
      Object.assign(group, options[g]);
    });
  }
}

function regularizerOf({ regularizer }: GroupOptions, name: string | undefined): Regularizer | null {
  if (typeof regularizer !== "function") return regularizer ?? null;
  const chosen = regularizer(name!);
  return chosen === null ? null : checked(chosen);
}

/** Gives equal counters one object, so that their parameters step in one launch again. */
function shareCounters(states: Iterable<ParameterState>): void {
  const shared = new Map<string, Counters>();
  for (const state of states) {
    const key = JSON.stringify(Object.entries(state.counters).sort());
    state.counters = shared.get(key) ?? state.counters;
    shared.set(key, state.counters);
  }
}
