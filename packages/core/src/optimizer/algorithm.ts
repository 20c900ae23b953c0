/** What an optimizer package supplies. Everything else is in core. */
import type { OpName } from "../rule/expression";
import type { Rule } from "../rule/rule";
import type { Tensor } from "../tensor/tensor";
import type { Shape } from "../values/shape";
import type { Regularizer } from "./gradients/regularizer";
import type { ModificationOptions } from "./modifications/options";

/** Options that every optimizer has. */
export interface BaseOptions {
  /** Learning rate. */
  lr: number;
  /** Maximize instead of minimize. */
  maximize: boolean;
}

/** Limits of gradients. Both may be given. */
export interface ClipOptions {
  /** Of the 2-norm of all gradients of the optimizer's groups that have this limit, as `clipGradNorm`. */
  norm?: number;
  /** Of each element's magnitude, as `clipGradValue`. */
  value?: number;
}

/** Options that core adds to every group. */
export interface GroupOptions extends ModificationOptions {
  /** A penalty that is added to the gradient of each parameter. A function chooses it by the parameter's name. */
  regularizer?: Regularizer | null | ((name: string) => Regularizer | null);
  /** Clips gradients in the launch of the step. The gradients themselves stay as they are. */
  clip?: ClipOptions | null;
  /**
   * How running averages are stored from their first value on. "bf16" halves them, "q8" (after `enableQ8()`) takes a quarter,
   * "bf16x" (after it too) three quarters: bfloat16 with 8 bits of correction, 24 bits in all.
   * Averages of float64 parameters stay float64. With "q8" and "bf16x", those of parameters below 4096 elements stay float32. Default "f32".
   */
  stateDType?: "f32" | "bf16" | "bf16x" | "q8";
  /**
   * Steps bf16 and f16 parameters without float32 master weights, by stochastic rounding (after `enableStochasticRounding()`):
   * to one of the two nearest values, so that the mean is exact. The draws depend on the seed (0 for `true`), the step and the element.
   * They are the same on every exact device, compiled and resumed. Other parameters step as without it. Default false.
   */
  stochasticRounding?: boolean | { readonly seed: number };
  /**
   * Row-sparse gradients step only the rows that they have, by the dense rule: p[i], m[i], v[i] = rule(p[i], g[i], m[i], v[i]; t) for each row i
   * of the gradient, once. t counts every step; other rows keep parameter and state. As Paddle's `lazy_mode`. Default false: all rows
   * are stepped, the others by a gradient of 0. `SparseAdam` of @opt/adam-amsgrad has PyTorch's numbers for such gradients.
   */
  lazyMode?: boolean;
}

/** Numbers of each parameter on the host, under their names in state dicts: `step` and, for NAdam, `mu_product`. Never changed, only replaced. */
export interface Counters {
  readonly step: number;
  readonly [name: string]: number;
}

/** First values of state by snake_case name: a number, or "param" for a copy of the parameter. Such copies are weights: they are stored in float32 or wider. */
export type InitialState = Readonly<Record<string, number | "param">>;

/** Ops that compute scalars: on numbers in float64, or on tensors where a step is differentiated (`functional`). */
export type Arithmetic = Readonly<Record<OpName | "fround", (...operands: number[]) => number>>;

export interface Algorithm<Options extends BaseOptions> {
  /** The class name, for messages. */
  readonly name: string;
  readonly defaults: Options;
  /** `weightDecay` scales the parameter by a scalar of the rule and does nothing else. */
  readonly isDecoupled?: boolean;
  /** `renewState` changes state between steps, and before the first one. */
  readonly renewsState?: boolean;
  /** `lr` is a factor of the rate that it finds. */
  readonly findsRate?: boolean;
  /** Options with one possible value. */
  readonly fixed?: Partial<Options>;
  /** Checks its own options. Core checks `lr` and `maximize`. @throws OptError BAD_ARGUMENT naming the option */
  validate(options: Options): void;
  /** The update, always downwards: core negates the gradient to maximize. The first buffers are `param` and `grad`. The others are state under their snake_case names in state dicts: at first zero, or what `initialState` says. */
  rule(options: Options): Rule;
  /** The update of the parts of complex parameters where PyTorch rounds those otherwise: the same buffers and scalars. */
  complexRule?(options: Options): Rule;
  /** State of its own shapes that stages read and renew, by snake_case name, for a parameter of this shape. It starts at zero. */
  stageState?(shape: Shape, options: Options): Readonly<Record<string, Shape>>;
  /** Scalars of the rule that stages compute, for each parameter its own. `scalars` gives the others. */
  readonly stageScalars?: readonly string[];
  /** The first values of state that does not start at zero, by snake_case name. */
  initialState?(options: Options): InitialState;
  /** Counters before the first step. */
  readonly initialCounters: Counters;
  /** Counters of the next step: a new object of finite numbers under the names of `initialCounters`, or the same object if nothing is counted. */
  advance(counters: Counters, options: Options, arithmetic: Arithmetic): Counters;
  /** Counters of a saved state that has no counters, as PyTorch's. */
  counted?(saved: Readonly<Record<string, unknown>>): Counters;
  /** The rule's scalars at a step, in float64: from its counters and those `before` it. To be differentiated they must use `arithmetic` alone. */
  scalars(
    options: Options,
    counters: Counters,
    arithmetic: Arithmetic,
    before: Counters,
  ): Readonly<Record<string, number>>;
  /** Checks a new parameter. @throws OptError naming it */
  checkParameter?(name: string, param: Tensor): void;
  /** Checks the gradient of a parameter before a step changes anything. @throws OptError naming the parameter */
  checkGradient?(name: string, gradient: Tensor): void;
}
