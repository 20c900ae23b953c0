/** The optimizer: groups, hooks and the step. Algorithms supply a rule and its scalars. */

import { dependsOn, runsOnce } from "../device/host-code";
import { tidy } from "../device/scope";
import { check, OptError } from "../errors/errors";
import { show } from "../errors/show";
import { showAs } from "../host/inspect-symbol";
import { checkNumbers } from "../ops/check-tensor";
import { Owners } from "../placement/owners";
import type { Rule } from "../rule/rule";
import { noGrad } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";
import type { Algorithm, BaseOptions, GroupOptions } from "./algorithm";
import { BaseOptimizer, type Loading, NOTHING } from "./base-optimizer";
import { completeOptions, ownOptions, UNSET } from "./check";
import { checkRule } from "./check-rule";
import { limitedNorm } from "./gradients/clip";
import { clipFactor } from "./gradients/norm";
import { type Group, ParameterGroup } from "./group";
import { isStaged } from "./modifications/check";
import { modifiedGradients, type Renewed } from "./modifications/gradients";
import { modifiable, noteFirstRate } from "./modifications/modified";
import { withModifications } from "./modifications/updates";
import { type GroupInput, type OptimizerInput, toGroups, toParameters } from "./parameters";
import { type Around, type PlannedLaunch, plan } from "./plan";
import { prepare } from "./prepare";
import type { StagedLaunch } from "./staged-launch";
import { isInSync } from "./state/master";
import type { Slot, StepCounter } from "./state/state";
import { loadedState, type OptimizerState, savedState } from "./state/state-dict";
import { scalarSourcesOf } from "./traced-launch";

/** What `on` calls, with the optimizer. */
export type Hook<Options extends BaseOptions> = (optimizer: Optimizer<Options>) => void;

/** The plan of the last step, if it was a plain one: no loss scale, no norm, no stages. */
interface CachedPlan<Options extends BaseOptions> {
  readonly generation: number;
  /** Of all parameters. Null for row-sparse ones: the launch has a dense copy of one step. */
  readonly gradients: readonly (Tensor | null)[];
  readonly launches: readonly PlannedLaunch<Options>[];
}

/**
 * Base of all optimizers. Behaves as torch.optim.Optimizer, but is stricter: it validates group options, rejects duplicates,
 * copies loaded state, and throws before anything has changed.
 */
// biome-ignore lint/suspicious/noExplicitAny: an optimizer of any class
export abstract class Optimizer<Options extends BaseOptions = any> extends BaseOptimizer<Optimizer<Options>> {
  readonly groups: readonly Group<Options>[] = [];
  /** @internal */
  protected readonly algorithm: Algorithm<Options>;
  /** @internal */
  protected readonly defaults: Options & GroupOptions;
  readonly #groups: ParameterGroup<Options>[] = [];
  /** Of divided parameters. */
  readonly #owners = new Owners();
  /** The parameters of all groups, and their state tensors. */
  #params: readonly Tensor[] = [];
  #states: readonly Tensor[] = [];
  /** Counts what makes another plan necessary. Gradients are compared instead. */
  #generation = 0;
  #cached: CachedPlan<Options> | null = null;
  /** Compiled functions are traced again when its result changes. */
  readonly #refreshed = (): number => {
    this.#refresh();
    return this.#counted();
  };
  /** Compiled functions free older traces when it grows. */
  readonly #counted = (): number => this.#generation + this.hookChanges;

  /** What the subclass computes: a constant. */
  protected abstract define(): Algorithm<Options>;

  /**
   * @param params tensors, [name, tensor] pairs, or groups `{ params, ...overrides }`
   * @throws OptError BAD_ARGUMENT (option out of range, empty list, unknown option), DUPLICATE, BAD_DTYPE, DISPOSED
   */
  constructor(params: OptimizerInput<Options>, options: Partial<Options> & GroupOptions = {}) {
    super();
    this.algorithm = modifiable(this.define());
    const { name, defaults } = this.algorithm;
    this.defaults = completeOptions(this.algorithm, defaults, options);
    // An option that is set on the optimizer would have no effect.
    const prototype = Object.getPrototypeOf(this);
    for (const option of Object.keys({ ...defaults, ...UNSET })) {
      const set = () => {
        throw new OptError("BAD_ARGUMENT", name, `${option} is an option of each group.`, `Set groups[0].${option}.`);
      };
      if (!(option in prototype)) Object.defineProperty(prototype, option, { set });
    }
    for (const group of toGroups<Options>(name, params)) this.addGroup(group);
    showAs(this, () => this.#summary());
  }

  /** @internal */
  protected override get where(): string {
    return this.algorithm.name;
  }

  /** Each group's options, and how many parameters it has. */
  #summary(): string {
    const lines = this.groups.map(({ params, names, ...options }, i) => {
      const set = Object.entries({ ...options, params: params.length }).filter(([, value]) => value != null);
      return `  (${i}): ${set.map(([name, value]) => `${name}=${show(value)}`).join(", ")}`;
    });
    return `${this.algorithm.name}(\n${lines.join("\n")}\n)`;
  }

  /** Adds parameters with options of their own. @throws OptError as the constructor does; nothing is added then */
  addGroup(group: GroupInput<Options>): void {
    const { name: where } = this.algorithm;
    runsOnce(where, "add a group");
    const options = completeOptions(this.algorithm, this.defaults, group, ["params"]);
    const known = new Set(this.groups.flatMap(({ params }) => params));
    const knownNames = new Set(this.groups.flatMap(({ names }) => names));
    const named = toParameters(where, group.params).map(({ name, tensor }, i) => {
      const unique = name ?? String(known.size);
      this.algorithm.checkParameter?.(unique, tensor);
      check(
        !known.has(tensor),
        "DUPLICATE",
        where,
        () => `a parameter must occur once, got ${unique} (number ${i}) again.`,
        "Tied weights are listed once.",
      );
      check(
        !knownNames.has(unique),
        "DUPLICATE",
        where,
        () => `parameter names must differ, got "${unique}" twice.`,
        "Pass model.namedParameters().",
      );
      known.add(tensor);
      knownNames.add(unique);
      return { param: tensor, name: unique, number: known.size - 1 };
    });
    const owners = this.#owners.of(named.map(({ param }) => param.placement));
    const slots = named.map((each, i): Slot => ({ ...each, owner: owners[i]!, state: null }));
    const all = { ...options, ...UNSET, ...options };
    noteFirstRate(all);
    const made = new ParameterGroup(this.algorithm, all, slots, (...given) => this.settingsOf(...given));
    this.#groups.push(made);
    (this.groups as Group<Options>[]).push(made.shown);
    this.#params = [...this.#params, ...made.shown.params];
    this.#generation++;
  }

  /** @internal */
  override get hashes(): readonly string[] {
    const { algorithm } = this;
    return this.groups.map((group) => `${algorithm.name} ${algorithm.rule(group).hash}`);
  }

  /** @internal */
  override get needsWholes(): boolean {
    return this.hasStages || this.groups.some(isStaged);
  }

  /** @internal True if stages run before the launches, see `staged`. */
  protected get hasStages(): boolean {
    return false;
  }

  /** @internal Checks a group whose options were written. Returns what else its plan depends on. */
  protected settingsOf({ options, slots }: ParameterGroup<Options>, rule: Rule): readonly unknown[] {
    checkRule(this.algorithm, rule);
    if (isStaged(options)) for (const { param } of slots) checkNumbers(this.algorithm.name, param);
    return [];
  }

  /** @internal */
  protected override parameters(): readonly Tensor[] {
    return this.#params;
  }

  /** @internal */
  protected override update(around: Around): void {
    const cached = this.#ready(around);
    if (cached !== null) this.#scheduled(cached.launches)();
    else noGrad(() => tidy(() => this.#plan(around)()));
  }

  /** @internal */
  override planned(around: Around): () => void {
    const cached = this.#ready(around);
    return cached === null ? this.#plan(around) : this.#scheduled(cached.launches);
  }

  /** Takes over changes. Returns the plan of the last step if it serves this one. */
  #ready(around: Around): CachedPlan<Options> | null {
    this.#refresh();
    dependsOn(this.#refreshed, this.#counted);
    return around === NOTHING && this.#cached !== null && this.#fits(this.#cached) ? this.#cached : null;
  }

  /** Takes over what was written and freed since the last step. @throws OptError BAD_STATE, BAD_ARGUMENT */
  #refresh(): void {
    this.#checkParams();
    this.#refreshOptions();
    const states = this.#states;
    for (let i = 0; i < states.length; i++) {
      if (!states[i]!.isDisposed) continue;
      this.#generation++;
      break;
    }
  }

  #refreshOptions(): number {
    for (const group of this.#groups) if (group.refresh()) this.#generation++;
    return this.#generation;
  }

  /** Groups must have the parameters that they were given: state and launches belong to these. @throws OptError BAD_STATE */
  #checkParams(): void {
    const { groups } = this;
    let isGiven = groups.length === this.#groups.length;
    for (let g = 0; isGiven && g < groups.length; g++) {
      const { shown, slots } = this.#groups[g]!;
      const { params } = shown;
      isGiven = groups[g] === shown && params.length === slots.length;
      for (let i = 0; isGiven && i < slots.length; i++) {
        const { param } = slots[i]!;
        (param.spanOf ?? param).checkSteps?.(groups, true);
        isGiven = params[i] === param;
      }
    }
    if (!isGiven) throw new OptError("BAD_STATE", this.algorithm.name, "parameters must come by addGroup.");
  }

  /** True if the plan serves again: nothing has changed, gradients are the same tensors, and master weights are in sync. */
  #fits({ generation, gradients, launches }: CachedPlan<Options>): boolean {
    if (generation !== this.#generation) return false;
    const params = this.#params;
    for (let i = 0; i < params.length; i++) {
      const param = params[i]!;
      const { grad } = param;
      if (grad !== gradients[i] || grad?.isDisposed || param.isDisposed) return false;
    }
    for (const { masters } of launches) if (!masters.every(isInSync)) return false;
    return true;
  }

  /** Prepares and plans a step. The result launches it. */
  #plan(around: Around): () => void {
    const { algorithm } = this;
    const norm = around.norm ?? limitedNorm(algorithm.name, this.#limited(), around.unscale);
    const { parameters: stepping, made } = prepare(algorithm, this.#groups);
    if (made) this.#stateChanged();
    const renewed = new Map<Slot, Renewed>();
    const launches = this.#groups.flatMap((group, g) => {
      const { options } = group;
      const own = aroundOf(options, norm, around);
      if (!options.centralize && !options.mars) return plan(algorithm, group, stepping[g]!, own);
      const modified = modifiedGradients(options, stepping[g]!, own);
      for (const [slot, state] of modified.renewed) renewed.set(slot, state);
      return plan(algorithm, group, modified.parameters, { ...own, isDone: true });
    });
    if (shareCounters(launches)) this.#generation++;
    const gradients = this.#params.map(({ grad }) => grad);
    const hasRows = gradients.some((grad) => grad?.sparse);
    const isStagedGroup = this.#groups.some(({ options }) => isStaged(options));
    const isPlain = around === NOTHING && norm === undefined && !this.hasStages && !isStagedGroup && !hasRows;
    this.#cached = isPlain ? { generation: this.#generation, gradients, launches } : null;
    for (const launch of launches) launch.begin();
    return this.#scheduled(launches, renewed);
  }

  /** All scalars and directions are computed before the first launch, so that an error leaves everything as it was. */
  #scheduled(launches: readonly PlannedLaunch<Options>[], renewed: ReadonlyMap<Slot, Renewed> = new Map()): () => void {
    for (const launch of launches) launch.scalars = launch.next();
    const staged = this.staged(launches).map((own, i) => {
      const launch = launches[i]!;
      return isStaged(launch.group.options) ? withModifications(this.algorithm, launch, own, renewed) : own;
    });
    const generation = this.#generation;
    const scalarSources = scalarSourcesOf(launches, () => this.#refreshOptions() === generation);
    return () => {
      for (let i = 0; i < launches.length; i++) {
        staged[i]!.launch(scalarSources[i]!);
        launches[i]!.commit();
      }
    };
  }

  /** @internal Runs the stages of launches. Returns what launches the rule on their results. */
  protected staged(
    launches: readonly PlannedLaunch<Options>[],
  ): readonly (PlannedLaunch<Options> | StagedLaunch<Options>)[] {
    return launches;
  }

  /** @internal The parameters that have gradients, by group, with state as a step finds it. */
  protected prepared(): readonly { readonly options: Options; readonly slots: readonly Slot[] }[] {
    this.#refresh();
    dependsOn(this.#refreshed, this.#counted);
    const { parameters, made } = prepare(this.algorithm, this.#groups);
    if (made) this.#stateChanged();
    return this.#groups.map(({ options }, g) => ({ options, slots: parameters[g]!.map(({ slot }) => slot) }));
  }

  /** @internal */
  override limited(): readonly Tensor[] {
    this.#refresh();
    return this.#limited();
  }

  #limited(): readonly Tensor[] {
    const limited = this.#groups.filter(({ options }) => options.clip?.norm !== undefined);
    return limited.flatMap(({ shown }) => shown.params);
  }

  /** State was made, loaded or freed. */
  #stateChanged(): void {
    this.#generation++;
    this.#states = this.#slots().flatMap(({ state }) => [...(state?.tensors.values() ?? [])]);
  }

  #slots(): Slot[] {
    return this.#groups.flatMap(({ slots }) => slots);
  }

  override dispose(): void {
    for (const slot of this.#slots()) {
      for (const tensor of slot.state?.tensors.values() ?? []) tensor.dispose();
      slot.state = null;
    }
    this.#cached = null;
    this.#stateChanged();
  }

  /**
   * Options by group and state by parameter name, with PyTorch's keys. Tensors and counters are the live ones, as in PyTorch: save or
   * clone them before the next step. Only stepped parameters have state. A penalty that a function chooses is part of the program and
   * is left out.
   */
  override stateDict(): OptimizerState {
    const { state, made } = savedState(this.algorithm, this.#groups);
    if (made) this.#stateChanged();
    const groups = this.groups.map(({ params: _, names, regularizer = null, ...options }) => {
      const penalty = typeof regularizer === "function" ? {} : { regularizer };
      return { ...ownOptions(options), ...penalty, params: [...names] };
    });
    return { groups, state };
  }

  /** @internal */
  override loading(saved: OptimizerState): Loading {
    const { states, options } = loadedState(this.algorithm, this.#groups, saved);
    return {
      commit: () => {
        this.dispose();
        for (const [slot, state] of states) slot.state = state;
        this.#stateChanged();
        this.groups.forEach((group, g) => {
          Object.assign(group, options[g]);
        });
      },
      discard: () => {
        for (const { tensors } of states.values()) for (const tensor of tensors.values()) tensor.dispose();
      },
    };
  }
}

/** Adds the clip factor of a group. */
function aroundOf({ clip }: GroupOptions, norm: Tensor | undefined, around: Around): Around {
  if (norm === undefined || clip?.norm === undefined) return around;
  return { ...around, factor: clipFactor(norm, clip.norm) };
}

/** Gives the parameters of each launch one counter that no other launch has. True if some had another one before. */
function shareCounters<Options extends BaseOptions>(launches: readonly PlannedLaunch<Options>[]): boolean {
  let isOther = false;
  for (const { slots, counter } of launches) {
    if (counter.users === slots.length && slots.every(({ state }) => state!.counter === counter)) continue;
    const own: StepCounter = { counters: counter.counters, users: slots.length };
    for (const { state } of slots) {
      state!.counter.users--;
      state!.counter = own;
    }
    isOther = true;
  }
  return isOther;
}
