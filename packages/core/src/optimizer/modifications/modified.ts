/** Algorithms with the modifications that their options ask for. */
import type { Rule } from "../../rule/rule";
import type { Algorithm, BaseOptions, GroupOptions } from "../algorithm";
import { LAST_GRAD, RADIUS } from "../state/state";
import type { Decay } from "./options";
import { type ModifiedUpdate, modifiedRule } from "./update";

/** The learning rates that groups begin with, by their options. */
const firstRates = new WeakMap<object, number>();

/** Notes the lr of a group that is made: `decay: "independent"` is relative to it. */
export function noteFirstRate(options: BaseOptions): void {
  firstRates.set(options, options.lr);
}

type All<Options> = Options & GroupOptions;

/** Where the weight decay goes; null where the algorithm's own rule decays. */
function decayOf<Options extends BaseOptions>(
  { isDecoupled }: Algorithm<Options>,
  options: All<Options>,
): Decay | null {
  const { weightDecay, decoupledWeightDecay } = options as { weightDecay?: number; decoupledWeightDecay?: boolean };
  if (!weightDecay) return null;
  const { decay, cautious, hyperball } = options;
  if (decay) return decay;
  return (cautious || hyperball) && (isDecoupled || decoupledWeightDecay) ? "decoupled" : null;
}

/** What the options ask for; null if it is nothing. */
export function updateOf<Options extends BaseOptions>(
  algorithm: Algorithm<Options>,
  options: All<Options>,
): ModifiedUpdate | null {
  const goes = decayOf(algorithm, options);
  const decay = goes === "l2" ? null : goes;
  const { cautious = false, hyperball = false } = options;
  if (decay === null && !cautious && !hyperball) return null;
  return { decay, cautious, hyperball, isScaled: Boolean(algorithm.isDecoupled) };
}

/** Options for the algorithm's own rule, which decays nothing where the modified one or the gradient does. */
function withoutDecay<Options extends BaseOptions>(algorithm: Algorithm<Options>, options: All<Options>): All<Options> {
  return decayOf(algorithm, options) === null ? options : { ...options, weightDecay: 0 };
}

/** What `modifiable` was given, by what it made. */
const plains = new WeakMap<object, unknown>();

/** True if the algorithm's own stages have state of their own shapes: the smallest matrix has some then. */
export function hasStageState<Options extends BaseOptions>(algorithm: Algorithm<Options>, options: Options): boolean {
  const { stageState } = (plains.get(algorithm) ?? algorithm) as Algorithm<Options>;
  return Object.keys(stageState?.([1, 1], options) ?? {}).length > 0;
}

/** The rule of a modifiable algorithm before it is modified. */
export function plainRule<Options extends BaseOptions>(algorithm: Algorithm<Options>, options: All<Options>): Rule {
  const plain = plains.get(algorithm) as Algorithm<Options>;
  return plain.rule(withoutDecay(plain, options));
}

/** The same algorithm, with the modifications of its options. */
export function modifiable<Options extends BaseOptions>(algorithm: Algorithm<Options>): Algorithm<Options> {
  const { stageState, complexRule } = algorithm;
  const modified = (rule: Rule, options: All<Options>) => {
    const update = updateOf(algorithm, options);
    return update === null ? rule : modifiedRule(rule, update);
  };
  const made: Algorithm<Options> = {
    ...algorithm,
    rule: (options) => modified(algorithm.rule(withoutDecay(algorithm, options)), options),
    ...(complexRule && {
      complexRule: (options: All<Options>) => modified(complexRule(withoutDecay(algorithm, options)), options),
    }),
    stageState(shape, options: All<Options>) {
      const { mars, hyperball } = options;
      return {
        ...stageState?.(shape, options),
        ...(mars && { [LAST_GRAD]: shape }),
        ...(hyperball && shape.length > 1 && { [RADIUS]: [1] }),
      };
    },
    scalars(options: All<Options>, counters, arithmetic, before) {
      const own = algorithm.scalars(withoutDecay(algorithm, options), counters, arithmetic, before);
      const decay = decayOf(algorithm, options);
      if (decay === null && !options.hyperball) return own;
      const { lr, weightDecay } = options as unknown as { readonly lr: number; readonly weightDecay: number };
      const { div, mul, sub } = arithmetic;
      const first = firstRates.get(options) ?? lr;
      const part = decay === "independent" ? mul(weightDecay, first === 0 ? 0 : div(lr, first)) : mul(lr, weightDecay);
      return { ...own, lrBy: lr, decayBy: sub(1, part) };
    },
  };
  plains.set(made, algorithm);
  return made;
}
