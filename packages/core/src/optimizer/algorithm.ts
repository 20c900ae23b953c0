/** What an optimizer package supplies; everything else is core's. */
import type { Op } from "../rule/expression";
import type { Rule } from "../rule/rule";
import type { Tensor } from "../tensor/tensor";
import type { ClipOptions } from "./gradients/around";
import type { Regularizer } from "./gradients/regularizer";

/** Options that every optimizer has. */
export interface BaseOptions {
  /** Learning rate. */
  lr: number;
  /** Climb instead of descend. */
  maximize: boolean;
}

/** Options that core adds to every group. */
export interface GroupOptions {
  /** A penalty added to the gradient of each parameter, chosen by the parameter where a function is given. */
  regularizer?: Regularizer | null | ((name: string) => Regularizer | null);
  /** Clips gradients in the launch of the step, which leaves them as they are. */
  clip?: ClipOptions | null;
  /**
   * How running averages are kept from their first value on: "bf16" halves them, "q8" (after `enableQ8()`) takes a quarter. Those of
   * float64 parameters stay float64, and with "q8" those of parameters below 4096 elements float32. Default "f32".
   */
  stateDType?: "f32" | "bf16" | "q8";
  /**
   * Parameters in bf16 and f16 are stepped without a float32 copy from their first step on, and rounded at random (after
   * `enableStochasticRounding()`): to one of the two nearest values, so that the mean is the exact one. What is drawn depends on
   * the seed (of `true` it is 0), the step and the element: the same on every exact device, replayed and resumed. Others are stepped as
   * without it. Default false: 16-bit parameters have a float32 copy.
   */
  stochasticRounding?: boolean | { readonly seed: number };
  /**
   * Row-sparse gradients step only the rows that they have, by the dense rule: p[i], m[i], v[i] = rule(p[i], g[i], m[i], v[i]; t) for the rows i
   * of the gradient, each once; t counts every step, and other rows keep parameter and state. As Paddle's `lazy_mode`. Default false: all rows
   * are stepped, the others by a gradient of 0. PyTorch's SparseAdam differs from Adam with `lazyMode` in where eps stands:
   * lr sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + eps).
   */
  lazyMode?: boolean;
}

/** Per-parameter numbers kept on the host, under their names in state dicts: `step` and, for NAdam, `mu_product`. Never changed, only replaced. */
export interface Counters {
  readonly step: number;
  readonly [name: string]: number;
}

/** What scalars are computed by: ops on numbers in float64, or on tensors where a step is differentiated (`functional`). */
export type Arithmetic = Readonly<Record<Op | "fround", (...operands: number[]) => number>>;

export interface Algorithm<Options extends BaseOptions> {
  /** The class name, for messages. */
  readonly name: string;
  readonly defaults: Options;
  /** Options that are part of what the algorithm is: they can be neither set otherwise nor loaded otherwise. */
  readonly fixed?: Partial<Options>;
  /** Checks the options of its own; core checks `lr` and `maximize`. @throws OptError BAD_ARGUMENT naming the option */
  validate(options: Options): void;
  /** The update, always downwards: `maximize` is core's, which negates the gradient. Its first buffers are `param` and `grad`; the others are state, zero at first, known in state dicts by their snake_case names. */
  rule(options: Options): Rule;
  /** Counters before the first step. */
  readonly initialCounters: Counters;
  /** Counters of the next step: a new object of finite numbers, with the names of `initialCounters`; the same ones where there is nothing to count. */
  advance(counters: Counters, options: Options, arithmetic: Arithmetic): Counters;
  /** Counters that a saved state stands for, where PyTorch's has none. */
  counted?(saved: Readonly<Record<string, unknown>>): Counters;
  /** The rule's scalars at a step, in float64. Computed by `arithmetic` alone, they can be differentiated. */
  scalars(options: Options, counters: Counters, arithmetic: Arithmetic): Readonly<Record<string, number>>;
  /** Checks a parameter that is to be trained. @throws OptError naming it */
  checkParameter?(name: string, param: Tensor): void;
}
