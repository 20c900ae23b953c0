/** An optimizer's steps as rules and scalars: for libraries that keep arrays of their own and compute rules in them. */
import { check } from "../errors/errors";
import { show } from "../errors/show";
import type { Algorithm, BaseOptions, Counters, GroupOptions } from "../optimizer/algorithm";
import { completeOptions } from "../optimizer/check";
import { advanced, checkRule } from "../optimizer/check-rule";
import { penaltyOf } from "../optimizer/group";
import { checkElementwise } from "../optimizer/modifications/check";
import { algorithmOf, type OptimizerClass } from "../optimizer/optimizer-class";
import { rewritesOf, rewrittenBy, type ScaledRewrite, scalarsOf } from "../optimizer/plan";
import { stateKeys } from "../optimizer/state/state";
import type { Rule } from "../rule/rule";

/** What one step computes for one parameter. */
export interface RuleStep {
  /** The optimizer's rule, with what its options do to the gradient before: maximize, clip by value, penalty. */
  readonly rule: Rule;
  /** Of the rule's buffers after the parameter and the gradient: PyTorch's names of the state. */
  readonly keys: readonly string[];
  /** For each of the rule's scalars, in float64; NaN for `factor`. */
  readonly scalars: readonly number[];
  /** With `clip.norm`: which of the scalars the library gives, min(1, limit / (norm + 1e-6)) of the 2-norm of all gradients. */
  readonly factor?: { readonly slot: number; readonly limit: number };
  /** The counters after the step. */
  readonly counters: Counters;
}

/** An optimizer without parameters, see `ruleSteps`. */
export interface RuleSteps<Options extends BaseOptions> {
  /** The optimizer's name. */
  readonly name: string;
  /** All of them, checked. */
  readonly options: Options & GroupOptions;
  /** The counters before the first step. */
  readonly initial: Counters;
  /** PyTorch's names of the state that the options ask for. */
  readonly keys: readonly string[];
  /** The value of each before the first step; "param" for a copy of the parameter. */
  readonly first: readonly (number | "param")[];
  /**
   * The step after `counters` of the parameter of this name.
   *
   * @param overrides options of this step (a schedule's learning rate)
   * @throws OptError BAD_ARGUMENT, UNSUPPORTED
   */
  next(counters: Counters, name: string, overrides?: Partial<Options> & GroupOptions): RuleStep;
}

/**
 * The steps of an optimizer, for whoever computes them: `buffers = rule(buffers; scalars)` element by element.
 *
 * @param optimizer its class: NAdam, AdamW, ...
 * @throws OptError BAD_ARGUMENT as the class does; UNSUPPORTED for `stateDType`, `lazyMode`, and for optimizers whose step has
 * several stages (Muon, Lamb, Adafactor)
 * @example
 * const adamw = ruleSteps(AdamW, { lr: 0.1 });
 * const { rule, scalars, counters } = adamw.next(adamw.initial, "w"); // counters.step is 1
 */
export function ruleSteps<Options extends BaseOptions>(
  optimizer: OptimizerClass<Options>,
  options: Partial<Options> & GroupOptions = {},
): RuleSteps<Options> {
  const algorithm = algorithmOf("ruleSteps", optimizer);
  check(
    !("stages" in optimizer.prototype),
    "UNSUPPORTED",
    algorithm.name,
    () => "a step of several stages is no single rule.",
    "Use the class.",
  );
  const chosen = completed(algorithm, algorithm.defaults, options);
  const ruleOf = (options: Options) => {
    const rule = algorithm.rule(options);
    checkRule(algorithm, rule);
    return rule;
  };
  const keys = stateKeys(ruleOf(chosen));
  const values = algorithm.initialState?.(chosen) ?? {};
  return {
    name: algorithm.name,
    options: chosen,
    initial: algorithm.initialCounters,
    keys,
    first: keys.map((key) => values[key] ?? 0),
    next(before, name, overrides) {
      const own = overrides === undefined ? chosen : completed(algorithm, chosen, overrides);
      const plain = ruleOf(own);
      const counters = advanced(algorithm, before, own);
      const limit = own.clip?.norm;
      const clipped: ScaledRewrite[] = limit === undefined ? [] : [{ rewrite: "scale", by: Number.NaN }];
      const rewrites = [...clipped, ...rewritesOf(own, penaltyOf(own, name))];
      const scalars = [
        ...scalarsOf(algorithm, own, plain, counters, before),
        ...rewrites.map(({ by }) => by),
      ] as number[];
      const step = { rule: rewrittenBy(plain, rewrites), keys: stateKeys(plain), scalars, counters };
      return limit === undefined ? step : { ...step, factor: { slot: plain.scalars.length, limit } };
    },
  };
}

function completed<Options extends BaseOptions>(
  algorithm: Algorithm<Options>,
  defaults: Options & GroupOptions,
  overrides: object,
): Options & GroupOptions {
  const options = completeOptions(algorithm, defaults, overrides);
  const { name: where } = algorithm;
  const { stateDType = "f32", lazyMode = false } = options;
  check(
    stateDType === "f32",
    "UNSUPPORTED",
    where,
    () => `state is kept by the library in the parameter's dtype, got stateDType ${show(stateDType)}.`,
    "Leave it out.",
  );
  checkElementwise(where, options);
  check(!lazyMode, "UNSUPPORTED", where, () => "the library's gradients have all rows, got lazyMode.", "Leave it out.");
  return options;
}
