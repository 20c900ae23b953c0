/** Groups of parameters. Their options are accessors, so that a step sees what was written since the last one. */
import { runsOnce } from "../device/host-code";
import { isPlainObject } from "../errors/show";
import { inspectSymbol } from "../host/inspect-symbol";
import type { Rule } from "../rule/rule";
import type { Tensor } from "../tensor/tensor";
import type { Algorithm, BaseOptions, GroupOptions } from "./algorithm";
import { checkGroup } from "./check";
import { checked, type Regularizer } from "./gradients/regularizer";
import { addedDecay, beta1Of } from "./modifications/check";
import { type Slot, stateKeys } from "./state/state";

/** A group of parameters with its own options, which may be changed between steps; other properties cannot be set. */
export type Group<Options> = Options &
  GroupOptions & { readonly params: readonly Tensor[]; readonly names: readonly string[] };

/** An array or object among the options, and its parts when they were checked last. */
interface Parts {
  readonly value: object;
  readonly seen: object;
}

export class ParameterGroup<Options extends BaseOptions> {
  /** What users see. */
  readonly shown: Group<Options>;
  /** The state buffers of the rule. */
  keys: readonly string[] = [];
  #rule: Rule | undefined;
  #penalties: readonly (Regularizer | null)[] = [];
  #isWritten = true;
  #parts: readonly Parts[] = [];
  #settings: readonly unknown[] = [];

  /**
   * @param options all that there are; read when a step is planned and when its scalars are computed
   * @param settingsOf what else the plan depends on
   */
  constructor(
    private readonly algorithm: Algorithm<Options>,
    readonly options: Options & GroupOptions,
    readonly slots: readonly Slot[],
    private readonly settingsOf: (group: ParameterGroup<Options>, rule: Rule) => readonly unknown[],
  ) {
    const shown = {};
    for (const name of Object.keys(options)) this.#show(shown, name as keyof Options & string);
    Object.assign(shown, { params: slots.map(({ param }) => param), names: slots.map(({ name }) => name) });
    Object.defineProperty(shown, inspectSymbol, { value: () => ({ ...shown }) });
    // Sealed: a misspelt option is no property that could be set.
    this.shown = Object.seal(shown) as Group<Options>;
  }

  #show(shown: object, name: keyof Options & string): void {
    const { algorithm, options } = this;
    const set = (value: Options[typeof name]) => {
      runsOnce(algorithm.name, `set the option ${name}`, "Set it before the call.");
      (options as Options)[name] = value;
      this.#isWritten = true;
    };
    Object.defineProperty(shown, name, { enumerable: true, get: () => options[name], set });
  }

  get rule(): Rule {
    return this.#rule!;
  }

  penaltyOf({ number }: Slot): Regularizer | null {
    return this.#penalties[number - this.slots[0]!.number]!;
  }

  /**
   * Takes over options that were written. True if another plan is needed.
   *
   * @throws OptError BAD_ARGUMENT if one is out of range; each call throws until it is set right
   */
  refresh(): boolean {
    if (!this.#isWritten && !this.#isTouched()) return false;
    const { algorithm, options, slots } = this;
    this.#isWritten = true;
    checkGroup(algorithm, options);
    const rule = algorithm.rule(options);
    const more = this.settingsOf(this, rule);
    const { maximize, clip, stateDType, lazyMode, stochasticRounding, regularizer, centralize, mars } = options;
    const penalties =
      typeof regularizer === "function"
        ? slots.map(({ name }) => penaltyOf(options, name))
        : new Array<Regularizer | null>(slots.length).fill(penaltyOf(options, ""));
    const chosen = typeof regularizer === "function" ? penalties : penalties.slice(0, 1);
    const settings = [
      ...[rule, maximize, clip?.norm, clip?.value, stateDType, Boolean(lazyMode), Boolean(stochasticRounding)],
      ...[Boolean(centralize), mars?.gamma, mars ? beta1Of(options) : undefined, addedDecay(options)],
      ...more,
      ...chosen.flatMap((penalty) => [penalty?.kind, penalty?.coefficient]),
    ];
    const isOther = settings.length !== this.#settings.length || settings.some((each, i) => each !== this.#settings[i]);
    this.#rule = rule;
    this.keys = stateKeys(rule);
    this.#penalties = penalties;
    this.#settings = settings;
    this.#parts = partsOf(options);
    this.#isWritten = false;
    return isOther;
  }

  /** Arrays and objects may have been changed in place, and a function may choose another penalty. */
  #isTouched(): boolean {
    for (const { value, seen } of this.#parts) if (!hasSameParts(value, seen)) return true;
    return typeof this.options.regularizer === "function";
  }
}

/** The penalty of a parameter. @throws OptError BAD_ARGUMENT */
export function penaltyOf({ regularizer }: GroupOptions, name: string): Regularizer | null {
  const chosen = typeof regularizer === "function" ? regularizer(name) : (regularizer ?? null);
  return chosen === null ? null : checked(chosen);
}

function partsOf(options: object): Parts[] {
  return Object.values(options).flatMap((value): Parts[] => {
    if (Array.isArray(value)) return [{ value, seen: [...value] }];
    return isPlainObject(value) ? [{ value, seen: { ...value } }] : [];
  });
}

function hasSameParts(value: object, seen: object): boolean {
  if (Array.isArray(value)) {
    const before = seen as unknown[];
    for (let i = 0; i < value.length; i++) if (value[i] !== before[i]) return false;
    return value.length === before.length;
  }
  for (const name in value) {
    if ((value as Record<string, unknown>)[name] !== (seen as Record<string, unknown>)[name]) return false;
  }
  for (const name in seen) if (!(name in value)) return false;
  return true;
}
