/** The optimizer loop: groups, state, hooks and one launch per group. Algorithms supply a rule and its scalars. */

import { activeRecorder, hooks } from "../device/recorder";
import { checkRepeatable } from "../device/repeatable";
import { tidy } from "../device/scope";
import { countOverwrites } from "../device/versions";
import { check, OptError } from "../errors/errors";
import { checkOptions, didYouMean } from "../errors/options";
import { show } from "../errors/show";
import { showAs } from "../host/inspect-symbol";
import { fillInPlace } from "../ops";
import { noGrad, recordingSetTo } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";
import type { Algorithm, BaseOptions, GroupOptions } from "./algorithm";
import { checkGroup, completeOptions, ownOptions, UNSET } from "./check";
import type { Around } from "./gradients/around";
import { checkOneDevice } from "./gradients/clip";
import { clipFactor, gradientsOf, totalNorm } from "./gradients/norm";
import { type GroupInput, type OptimizerInput, toGroups, toParameters } from "./parameters";
import { areSame, planUpdates, settingsOf, type Update } from "./plan";
import { Slot } from "./slot";
import { completeState } from "./state/complete-state";
import { MASTER, type ParameterState, stateKeys } from "./state/state";
import {
  checkParameterState,
  copyParameterState,
  matchNames,
  type OptimizerState,
  parameterStateDict,
  shareCounters,
} from "./state/state-dict";

/** A group of parameters with its own options, which may be changed between steps; other properties cannot be set. */
export type Group<Options> = Options &
  GroupOptions & { readonly params: readonly Tensor[]; readonly names: readonly string[] };

/** The moments at which a hook may run. */
export type HookName = "beforeStep" | "afterStep";
/** What `on` calls, with the optimizer. */
export type Hook<Options extends BaseOptions> = (optimizer: Optimizer<Options>) => void;

/**
 * Base of all optimizers. Behaves as torch.optim.Optimizer, and is stricter: group overrides are validated, duplicates are errors,
 * loaded state is copied, and whatever is refused is refused before anything has changed.
 */
export abstract class Optimizer<Options extends BaseOptions> {
  readonly groups: readonly Group<Options>[] = [];
  /** For parameters that are parts of tensors: which tensor each is of. `clip.norm` then takes the gradients of those. */
  wholeOf: ((part: Tensor) => Tensor) | null = null;
  /** The parameters of each group, with their state. */
  private readonly slots: Slot[][] = [];
  /** The launches of the last step, by group. */
  #plans: Update[][] = [];
  /** @internal */
  protected readonly algorithm: Algorithm<Options>;
  /** @internal */
  protected readonly defaults: Options & GroupOptions;
  readonly #hooks: Record<HookName, Set<Hook<Options>>> = { beforeStep: new Set(), afterStep: new Set() };

  /** What the subclass computes: a constant. */
  protected abstract define(): Algorithm<Options>;

  /**
   * @param params tensors, [name, tensor] pairs, or groups `{ params, ...overrides }`
   * @throws OptError BAD_ARGUMENT (option out of range, empty list, unknown option), DUPLICATE, BAD_DTYPE, DISPOSED
   */
  constructor(params: OptimizerInput<Options>, options: Partial<Options> & GroupOptions = {}) {
    this.algorithm = this.define();
    const { name, defaults } = this.algorithm;
    this.defaults = completeOptions(this.algorithm, defaults, options);
    // Set on the optimizer, which nobody reads, an option would do nothing.
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
    checkRepeatable(where, "a new group");
    const options = completeOptions(this.algorithm, this.defaults, group, ["params"]);
    const { params } = group;
    const known = new Set(this.groups.flatMap((group) => group.params));
    const knownNames = new Set(this.groups.flatMap((group) => group.names));
    const parameters = toParameters(where, params);
    const names = parameters.map(({ name, tensor }, i) => {
      const unique = name ?? String(known.size);
      this.algorithm.checkParameter?.(unique, tensor);
      const again = () => `a parameter must occur once, got ${unique} (number ${i}) again.`;
      check(!known.has(tensor), "DUPLICATE", where, again, "Tied weights are listed once.");
      const problem = () => `parameter names must differ, got "${unique}" twice.`;
      check(!knownNames.has(unique), "DUPLICATE", where, problem, "Pass model.namedParameters().");
      known.add(tensor);
      knownNames.add(unique);
      return unique;
    });
    // Sealed with all options there are: a misspelt one is no property that could be set.
    const all = { ...options, ...UNSET, ...options };
    const made = { ...all, params: parameters.map(({ tensor }) => tensor), names } as Group<Options>;
    (this.groups as Group<Options>[]).push(Object.seal(made));
    const count = known.size - names.length;
    this.slots.push(parameters.map(({ tensor }, i) => new Slot(tensor, names[i]!, count + i)));
  }

  /**
   * One update of every parameter that has a gradient; the others are left alone and do not count the step.
   *
   * @throws OptError BAD_ARGUMENT if a group's options were set out of range; DISPOSED for gradients that were freed; OUT_OF_MEMORY.
   * Nothing has changed then.
   */
  step(): void;
  /**
   * The same after `closure`, which recomputes the loss and its gradients.
   *
   * @returns what `closure` returns
   * @throws OptError BAD_ARGUMENT if it is asynchronous; and as `step()` does
   */
  step<Loss>(closure: () => Loss): Loss;
  step<Loss>(closure?: () => Loss): Loss | undefined {
    const { name: where } = this.algorithm;
    const problem = () => `step() takes nothing or a function, got ${typeof closure}.`;
    const isFunction = closure === undefined || typeof closure === "function";
    check(isFunction, "BAD_ARGUMENT", where, problem, "The learning rate is an option: groups[0].lr.");
    this.#runHooks("beforeStep");
    const loss = closure === undefined ? undefined : recordingSetTo(`${where}.step`, true, closure);
    this.#finish({});
    return loss;
  }

  /** @internal A step with what the device says of it. Returns what counts it no more, where it was skipped. */
  apply(around: Around): () => void {
    this.#runHooks("beforeStep");
    const plans = this.#finish(around);
    return () => {
      for (const { bucket, before, counters } of plans.flat())
        for (const { state } of bucket.slots) if (state?.counters === counters) state.counters = before;
    };
  }

  /** Returns the launches that it made. */
  #finish(around: Around): Update[][] {
    noGrad(() => tidy(() => this.#update(around)));
    const plans = this.#plans;
    this.#runHooks("afterStep");
    return plans;
  }

  /** @internal Hooks may look at gradients before a step. */
  get looksBefore(): boolean {
    return this.#hooks.beforeStep.size > 0;
  }

  #runHooks(event: HookName): void {
    if (this.#hooks[event].size > 0) {
      hooks(() => {
        for (const hook of this.#hooks[event]) hook(this);
      });
    }
  }

  /** What a recording relies on beside its launches: what `look` finds must be the same before each replay. */
  #guard(look: () => readonly unknown[]): void {
    const recorder = activeRecorder();
    if (recorder === null) return;
    const recorded = look();
    const problem = () => "groups, their options or hooks have changed.";
    recorder.guard(() =>
      check(areSame(look(), recorded), "BAD_STATE", this.algorithm.name, problem, "Record the step again."),
    );
  }

  /** The norm of all gradients in groups that limit it. */
  #limitedNorm({ unscale }: Around): Tensor | undefined {
    const limited = this.groups.filter(limitsNorm);
    if (limited.length === 0) return undefined;
    const params = limited.flatMap((group) => group.params);
    const grads = gradientsOf(this.wholeOf === null ? params : params.map(this.wholeOf));
    if (grads.length === 0) return undefined;
    checkOneDevice(`${this.algorithm.name} clip.norm`, grads);
    const norm = totalNorm(grads, 2);
    return unscale ? norm.mul(unscale) : norm;
  }

  /** @internal The launches of a group's step. */
  protected readonly plan: typeof planUpdates<Options> = planUpdates;

  /** State and launches are those of the parameters that groups were given. @throws OptError BAD_STATE */
  #checkParams(): void {
    const { groups, slots } = this;
    for (let g = 0; g < groups.length; g++) {
      const own = slots[g];
      const { params } = groups[g]!;
      let isGiven = own !== undefined && params?.length === own.length;
      for (let i = 0; isGiven && i < own!.length; i++) {
        const { param } = own![i]!;
        (this.wholeOf?.(param) ?? param).checkSteps?.(groups, true);
        isGiven = params[i] === param;
      }
      if (!isGiven) throw new OptError("BAD_STATE", this.algorithm.name, "parameters must come by addGroup.");
    }
  }

  /** Makes no closures of its own where nothing is recorded: they would be garbage of every step. */
  #update(around: Around): void {
    this.#checkParams();
    for (const group of this.groups) checkGroup(this.algorithm, group);
    const norm = this.#limitedNorm(around);
    const last = this.#plans;
    this.#plans = []; // where this step is refused, slots know of gradients that the last one's launches do not
    const plans = new Array<Update[]>(this.groups.length);
    for (let g = 0; g < this.groups.length; g++) {
      const group = this.groups[g]!;
      const limit = group.clip?.norm;
      const clipped =
        limit === undefined || norm === undefined ? around : { ...around, factor: clipFactor(norm, limit) };
      plans[g] = this.plan(this.algorithm, group, this.slots[g]!, clipped, last[g]);
    }
    const recorder = activeRecorder();
    for (const plan of plans) {
      for (const update of plan) {
        const { device, kernel, tensors, lazy, masters, written, versions, counting } = update.bucket;
        const { scalars, counters } = update;
        (lazy ?? device).launch(
          { kind: "rule", kernel, tensors, scalars },
          recorder === null ? undefined : repeated(update),
          written,
        );
        countOverwrites(versions);
        if (recorder !== null) for (const { storage } of written) recorder.overwrote(storage);
        counting.count(counters);
        for (const slot of masters) slot.followed();
      }
    }
    this.#plans = plans;
    if (recorder !== null) this.#guardSettings(plans);
  }

  /** Launches see to the options of their groups; a scaler asks for those of all. */
  #guardSettings(plans: readonly Update[][]): void {
    const idle = this.groups.filter((_, g) => plans[g]!.length === 0);
    this.#guard(() => {
      this.#checkParams();
      for (const group of idle) checkGroup(this.algorithm, group);
      const { groups } = this;
      const hooks = this.#hooks;
      return [groups.length, hooks.beforeStep.size > 0, hooks.afterStep.size > 0, ...idle.flatMap(settingsOf)];
    });
  }

  /** Clears all gradients: to null, or to zeros in place. Gradients made by backward are freed; clone one to keep it. */
  zeroGrad(options: { setToNull?: boolean } = {}): void {
    checkOptions("zeroGrad", options, { setToNull: "boolean" });
    const { setToNull = true } = options;
    this.#guard(() => [this.groups.length]);
    for (const { params } of this.groups) {
      for (const param of params) {
        if (setToNull) param.clearGradient();
        else if (param.grad !== null) {
          // What is added next must not go on along the tape of what was there.
          if (param.grad.node) param.grad = param.grad.alias();
          fillInPlace(param.grad.sparse?.emptied() ?? param.grad, 0);
        }
      }
    }
  }

  /** Calls `hook` before or after every step. Returns what removes it. */
  on(event: HookName, hook: Hook<Options>): () => void {
    const { name: where } = this.algorithm;
    const events = Object.keys(this.#hooks);
    const problem = () => `events are ${events.join(" and ")}, got ${show(event)}.`;
    check(events.includes(event), "BAD_ARGUMENT", where, problem, didYouMean(String(event), events));
    check(typeof hook === "function", "BAD_ARGUMENT", where, () => `a hook must be a function, got ${typeof hook}.`);
    const hooks = this.#hooks[event];
    hooks.add(hook);
    return () => {
      hooks.delete(hook);
    };
  }

  /** Frees the state. The optimizer can go on, from a fresh state; its parameters are left alone. */
  dispose(): void {
    for (const slot of this.slots.flat()) slot.clear();
    this.#plans = [];
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /**
   * Options by group and state by parameter name, with PyTorch's keys. Tensors and counters are the live ones, as in PyTorch: save or clone them before the next step. Only stepped parameters have state.
   * A penalty chosen by a function is the program's and not in it.
   */
  stateDict(): OptimizerState {
    const state: OptimizerState["state"] = {};
    const initial = this.algorithm.initialCounters;
    const listed = { ...initial };
    this.groups.forEach((group, g) => {
      const rule = this.algorithm.rule(group);
      const keys = stateKeys(rule);
      // Without averages there are no steps to count; a float32 copy alone tells that there were some, until averages are made here.
      const isStepped = ({ counters, tensors }: ParameterState) =>
        counters.step > 0 || (tensors.has(MASTER) && (counters !== initial || !keys.some((key) => tensors.has(key))));
      const stepped = this.slots[g]!.filter(({ state }) => state !== null && isStepped(state));
      // An option that was switched on since (amsgrad) asks for state that the next step would make.
      completeState(stepped, rule, initial, group);
      for (const slot of stepped) {
        if (slot.state!.counters === initial) slot.state!.counters = listed;
        if (slot.state!.tensors.has(MASTER)) slot.master(); // follows a parameter that was set since the last step
        state[slot.name] = parameterStateDict(slot);
      }
    });
    const groups = this.groups.map(({ params: _, names, regularizer = null, ...options }) => {
      const penalty = typeof regularizer === "function" ? {} : { regularizer };
      return { ...ownOptions(options), ...penalty, params: [...names] };
    });
    return { groups, state };
  }

  /**
   * Takes over options and state: groups by position, parameters by name (by position where names are numbers).
   * State is copied, and cast to its parameter's dtype and device. Saved options replace the present ones, as in PyTorch; so does
   * the penalty, or that there was none. What the state does not name (another library's, a penalty by function) stays.
   * Tensors of a parameter's shape that only other options ask for are kept, until those are set.
   *
   * @throws OptError BAD_STATE if it does not fit. Nothing has changed then.
   */
  loadStateDict(saved: OptimizerState): void {
    const { name: where, initialCounters, counted } = this.algorithm;
    checkRepeatable(where, "loading a state");
    const matched = matchNames(where, this.slots, saved);
    const options = this.groups.map((group, g) => this.#loadedOptions(group, saved.groups[g]!, g));
    const plan = this.slots.flatMap((slots, g) => {
      const rule = this.algorithm.rule(options[g]!);
      return slots.flatMap((slot) => {
        const stored = saved.state[matched.get(slot)!];
        if (stored === undefined) return [];
        const entry = counted === undefined ? stored : { ...stored, ...counted(Object(stored)) };
        checkParameterState(where, slot.name, slot.param, entry, stateKeys(rule), initialCounters);
        return [{ slot, entry, rule, options: options[g]! }];
      });
    });
    const states = shareCounters(
      plan.map(({ slot, entry, rule, options }) =>
        copyParameterState(slot.param, entry, rule, initialCounters, options),
      ),
    );
    this.dispose();
    plan.forEach(({ slot }, i) => {
      slot.state = states[i]!;
    });
    this.groups.forEach((group, g) => {
      Object.assign(group, options[g]);
    });
  }

  /** A group's options as saved, validated. Unknown ones are left out: PyTorch saves how it computes, too. */
  #loadedOptions(group: Group<Options>, saved: Record<string, unknown>, g: number): Options & GroupOptions {
    const { name: where, fixed, defaults } = this.algorithm;
    const present = Object(group) as Readonly<Record<string, unknown>>;
    const options = {
      ...Object.fromEntries(Object.keys(defaults).map((key) => [key, saved[key] ?? present[key]])),
      ...Object.fromEntries(
        Object.keys(UNSET).map((key) => [key, saved[key] === undefined ? present[key] : saved[key]]),
      ),
      ...fixed,
    } as Options & GroupOptions;
    try {
      checkGroup(this.algorithm, options);
    } catch (cause) {
      const problem = cause instanceof Error ? cause.message : String(cause);
      throw new OptError("BAD_STATE", where, `group ${g} of the state has bad options: ${problem}`, "", { cause });
    }
    return ownOptions(options);
  }
}

const limitsNorm = ({ clip }: GroupOptions) => clip?.norm !== undefined;

const repeated = (update: Update) => () => update.bucket.repeated(update);
