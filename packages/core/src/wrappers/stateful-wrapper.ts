/** A wrapper of one optimizer that keeps a tensor of each parameter and counters of each group. Both are in its state dict. */
import { afterEachRun, asFound, dependsOn } from "../device/host-code";
import { keep, tidy } from "../device/scope";
import { activeTracer } from "../device/tracer";
import { check } from "../errors/errors";
import { isPlainObject, show } from "../errors/show";
import { where as choose, less } from "../functions";
import { cast, clone, copyInto, move } from "../ops";
import type { BaseOptions } from "../optimizer/algorithm";
import type { Loading } from "../optimizer/base-optimizer";
import type { Group } from "../optimizer/group";
import type { Around } from "../optimizer/plan";
import { stateKey } from "../optimizer/state/state";
import { checkParts, type OptimizerState, type ParameterStateDict } from "../optimizer/state/state-dict";
import { noGrad } from "../tensor/tape";
import { Tensor } from "../tensor/tensor";
import { sameShape, showShape } from "../values/shape";
import { checkFullPrecision } from "./full-precision";
import { keepsAverages, OptimizerWrapper, type Wrappable } from "./wrapper";

/** A parameter and the tensor that is kept of it. */
export interface Kept {
  readonly param: Tensor;
  readonly own: Tensor;
}

export abstract class StatefulWrapper<
  OwnGroup extends Group<BaseOptions>,
  Counters extends Readonly<Record<string, number>>,
> extends OptimizerWrapper<OwnGroup> {
  /** Of each group; never changed, only replaced. */
  #counters: Counters[] = [];
  readonly #initial: Counters;
  /** The name of the counters in groups of state dicts. */
  readonly #name: string;
  /** The name of the tensors there. */
  readonly #key: string;
  readonly #tensors = new Map<Tensor, Tensor>();
  #changes = 0;
  /** The compiled call that steps it now. */
  #call: object | null = null;

  /** @param name of what is kept. @throws OptError BAD_ARGUMENT for an optimizer that keeps averages */
  constructor(where: string, base: Wrappable<OwnGroup>, name: string, initial: Counters) {
    super(where, [base]);
    check(
      !keepsAverages(base),
      "BAD_ARGUMENT",
      where,
      () => `averages the weights, and so does what it wraps, got ${show(base)}.`,
      "Wrap an optimizer that does not.",
    );
    checkFullPrecision(where, this.parameters());
    this.#initial = initial;
    this.#name = name;
    this.#key = stateKey(name);
  }

  /**
   * @internal The parameters of each group with what is kept of them: at first a copy.
   * @throws OptError UNSUPPORTED for a second step in one compiled call, whose counters are those of its beginning
   */
  protected kept(): readonly (readonly Kept[])[] {
    const call = activeTracer();
    check(
      call === null || call !== this.#call,
      "UNSUPPORTED",
      this.where,
      () => "a compiled function takes one step of it, got a second.",
      "Compile a function of one step, and call it twice.",
    );
    this.#call = call;
    const kept = this.groups.map(({ params }, g) =>
      params.map((param) => ({ param, own: this.#tensorOf(param, this.countersOf(g) === this.#initial) })),
    );
    dependsOn(() => this.#changes);
    return kept;
  }

  #tensorOf(param: Tensor, isFirst: boolean): Tensor {
    const known = this.#tensors.get(param);
    // A first step that threw has copied the parameter as it was then.
    if (known !== undefined && isFirst) asFound(param, () => noGrad(() => copyInto(param, known)));
    if (known !== undefined) return known;
    checkFullPrecision(this.where, [param]);
    asFound(param, () => {
      const made = noGrad(() => tidy(() => keep(clone(param.detach()))));
      made.placement = param.placement;
      this.#tensors.set(param, made);
    });
    this.#changes++;
    return this.#tensors.get(param)!;
  }

  /** @internal */
  protected countersOf(group: number): Counters {
    return this.#counters[group] ?? this.#initial;
  }

  /** @internal */
  protected setCounters(next: (counters: Counters, group: OwnGroup) => Counters): void {
    this.#counters = this.groups.map((group, g) => next(this.countersOf(g), group));
  }

  /** @internal The counters of the next step, unless this one is skipped. */
  protected count(around: Around, next: (counters: Counters, group: OwnGroup) => Counters): void {
    afterEachRun(() => {
      if (!around.skipped?.()) this.setCounters(next);
    });
  }

  /** The optimizer's state, with a tensor of each parameter and the counters of each group. Tensors are the live ones. */
  override stateDict(): OptimizerState {
    const { groups, state } = super.stateDict();
    const all: OptimizerState["state"] = { ...state };
    this.groups.forEach(({ params, names }, g) => {
      if (this.countersOf(g) === this.#initial) return; // every step was skipped
      params.forEach((param, i) => {
        const tensor = this.#tensors.get(param);
        const others = Object.getOwnPropertyDescriptors(state[names[i]!] ?? {}); // counters are live
        if (tensor === undefined) return;
        const own = { [this.#key]: { value: tensor, enumerable: true } };
        all[names[i]!] = Object.defineProperties({}, { ...others, ...own }) as ParameterStateDict;
      });
    });
    return { groups: groups.map((group, g) => ({ ...group, [this.#name]: { ...this.countersOf(g) } })), state: all };
  }

  /** @internal */
  override loading(saved: OptimizerState): Loading {
    checkParts(this.where, saved, this.groups.length);
    const isKept = Object.values(saved.state).some((entry) => this.#key in Object(entry));
    const counters = saved.groups.map((group) =>
      this.#savedCounters(group?.[this.#name] ?? (isKept ? undefined : this.#initial), isKept),
    );
    const state: OptimizerState["state"] = {};
    const tensors: Record<string, unknown> = {};
    for (const [name, entry] of Object.entries(saved.state)) {
      const { [this.#key]: own, ...others } = Object(entry) as ParameterStateDict;
      if (own === undefined) state[name] = entry;
      else tensors[name] = own;
      if (own !== undefined && Object.keys(others).length > 0) state[name] = others as ParameterStateDict;
    }
    const found = this.groups.flatMap(({ params, names }, g) =>
      params.flatMap((param, i) => {
        const value = tensors[names[i]!] ?? tensors[String(saved.groups[g]?.params?.[i])];
        return value === undefined ? [] : [{ param, value: this.#checked(names[i]!, param, value) }];
      }),
    );
    const loading = super.loading({ groups: saved.groups, state });
    const copies = noGrad(() =>
      found.map(({ param, value }) => {
        const copy = tidy(() => keep(clone(cast(move(value.detach(), param.device), param.dtype))));
        copy.placement = param.placement;
        return [param, copy] as const;
      }),
    );
    return {
      commit: () => {
        loading.commit();
        this.#free();
        for (const [param, copy] of copies) this.#tensors.set(param, copy);
        this.#counters = counters;
      },
      discard: () => {
        loading.discard();
        for (const [, copy] of copies) copy.dispose();
      },
    };
  }

  /** The initial ones themselves where no step was taken. */
  #savedCounters(given: unknown, isKept: boolean): Counters {
    const names = Object.keys(this.#initial);
    const fits = isPlainObject(given) && names.every((name) => Number.isFinite(given[name]));
    const problem = () => `${this.#name} of a group must have the numbers ${names.join(", ")}, got ${show(given)}.`;
    check(fits, "BAD_STATE", this.where, problem, "Pass what stateDict() returned.");
    const counters = given as Counters;
    const isInitial = !isKept && names.every((name) => counters[name] === this.#initial[name]);
    return isInitial ? this.#initial : (Object.fromEntries(names.map((name) => [name, counters[name]])) as Counters);
  }

  #checked(name: string, param: Tensor, value: unknown): Tensor {
    const fits = value instanceof Tensor && sameShape(value.shape, param.shape);
    const got = () => (value instanceof Tensor ? showShape(value.shape) : show(value));
    const problem = () => `${name}: ${this.#key} must be a tensor of shape ${showShape(param.shape)}, got ${got()}.`;
    check(fits, "BAD_STATE", this.where, problem, "The model has changed.");
    value.checkAlive();
    return value;
  }

  #free(): void {
    for (const tensor of this.#tensors.values()) tensor.dispose();
    this.#tensors.clear();
    this.#changes++;
  }

  override dispose(): void {
    super.dispose();
    this.#free();
    this.#counters = [];
  }
}

/** target = value, or `otherwise` if the device skips the step. */
export function writeInto(target: Tensor, value: Tensor, otherwise: Tensor, { skip }: Around): void {
  copyInto(skip === undefined ? value : choose(less(0, skip), otherwise, value), target);
}

/** from + weight (to - from) */
export function between(from: Tensor, to: Tensor, weight: number | Tensor): Tensor {
  return from.add(to.sub(from).mul(weight));
}
