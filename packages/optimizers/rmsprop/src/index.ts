/** RMSprop: options, the update of one element in PyTorch's order of operations, its numbers of a step, and the class. */
import {
  type Algorithm,
  add,
  type BaseOptions,
  check,
  checkBoolean,
  checkNotNegative,
  defineRule,
  div,
  type Expression,
  everyVariant,
  fma,
  type GroupOptions,
  mul,
  neg,
  Optimizer,
  ruleByVariant,
  sqrt,
  sub,
  type VariantOf,
} from "@opt/core";

export interface RMSpropOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 1e-2. */
  lr: number;
  /** Decay rate of the running average of the squared gradient, >= 0. Default 0.99. */
  alpha: number;
  /** Added to the denominator, >= 0. Default 1e-8. */
  eps: number;
  /** Weight decay, >= 0. Default 0. */
  weightDecay: number;
  /** What is kept of the momentum from step to step, >= 0. Default 0. */
  momentum: number;
  /** Divide by the standard deviation of the gradient instead of its root mean square. Default false. */
  centered: boolean;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

const choices = {
  /** smallAlpha: alpha <= 0.5, where PyTorch interpolates from the other end. */
  centered: ["no", "yes", "smallAlpha"],
  momentum: [false, true],
  /** Weight decay, added to the gradient. */
  decay: [false, true],
} as const;

/** What makes one variant of the rule different from another. */
export type RMSpropVariant = VariantOf<typeof choices>;

/** The rule of a variant; the same object for the same variant. */
export const rmspropRule = /* @__PURE__ */ ruleByVariant(choices, ({ momentum, centered, decay }) => {
  const kind = centered === "no" ? "" : centered === "yes" ? "Centered" : "CenteredSmallAlpha";
  return defineRule({
    name: `rmsprop${kind}${momentum ? "Momentum" : ""}${decay ? "L2" : ""}`,
    buffers: [
      "param",
      "grad",
      "squareAvg",
      ...(momentum ? ["momentumBuffer"] : []),
      ...(centered === "no" ? [] : ["gradAvg"]),
    ],
    nonNegative: ["squareAvg"],
    scalars: [...(decay ? ["decay"] : []), "alpha", "oneMinusAlpha", "eps", ...(momentum ? ["momentum"] : []), "negLr"],
    update(buffers, scalars) {
      const { param, grad, squareAvg, momentumBuffer, gradAvg } = buffers as Record<string, Expression> &
        Record<"param" | "grad" | "squareAvg", Expression>;
      const h = scalars as Record<string, Expression>;
      const g = decay ? fma(h.decay!, param, grad) : grad;
      const square = fma(mul(h.oneMinusAlpha!, g), g, mul(squareAvg, h.alpha!));
      const mean =
        centered === "no"
          ? undefined
          : centered === "yes"
            ? fma(h.oneMinusAlpha!, sub(g, gradAvg!), gradAvg!)
            : fma(sub(h.oneMinusAlpha!, 1), sub(g, gradAvg!), g);
      const variance = mean === undefined ? square : fma(neg(mean), mean, square);
      const denom = add(sqrt(variance), h.eps!);
      const state = { squareAvg: square, ...(mean === undefined ? {} : { gradAvg: mean }) };
      if (!momentum) return { param: add(param, div(mul(h.negLr!, g), denom)), ...state };
      const m = add(mul(momentumBuffer!, h.momentum!), div(g, denom));
      return { param: fma(h.negLr!, m, param), momentumBuffer: m, ...state };
    },
  });
});

/** Every variant, for kernel builds and tests. */
export const rmspropRules = /* @__PURE__ */ everyVariant(choices, rmspropRule);

const rmsprop: Algorithm<RMSpropOptions> = {
  name: "RMSprop",
  defaults: { lr: 1e-2, alpha: 0.99, eps: 1e-8, weightDecay: 0, momentum: 0, centered: false, maximize: false },
  validate(options) {
    for (const name of ["alpha", "eps", "weightDecay", "momentum"] as const) {
      checkNotNegative("RMSprop", name, options[name]);
    }
    checkBoolean("RMSprop", "centered", options.centered);
    const isPacked = (options as GroupOptions).stateDType === "q8";
    check(
      !(options.centered && isPacked),
      "UNSUPPORTED",
      "RMSprop",
      () => "the variance of rounded averages may be negative, got centered with stateDType q8.",
      "Leave one of them out.",
    );
  },
  rule: ({ alpha, weightDecay, momentum, centered }) =>
    rmspropRule({
      momentum: momentum > 0,
      centered: !centered ? "no" : 1 - alpha >= 0.5 ? "smallAlpha" : "yes",
      decay: weightDecay !== 0,
    }),
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars: ({ lr, alpha, eps, weightDecay, momentum }, _, { sub, neg }) => ({
    decay: weightDecay,
    alpha,
    oneMinusAlpha: sub(1, alpha),
    eps,
    momentum,
    negLr: neg(lr),
  }),
};

/**
 * RMSprop: the gradient divided by its running root mean square, or `centered` by its running standard deviation.
 *
 *     g = grad (+ weightDecay * p)          v = alpha v + (1 - alpha) g^2          centered: a = alpha a + (1 - alpha) g
 *     d = g / (sqrt(v (- a^2)) + eps)          p -= lr * d          with momentum: m = momentum * m + d, p -= lr * m
 *
 * The numbers are those of torch.optim.RMSprop (PyTorch 2.13), bit for bit in float32 but for PyTorch's vectorised square root.
 * Sources: Tieleman & Hinton (2012); Graves, "Generating Sequences With Recurrent Neural Networks" (2013). Keras and Paddle add eps to v.
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { RMSprop } from "@opt/rmsprop";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new RMSprop([w], { lr: 0.01, momentum: 0.9, centered: true });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class RMSprop extends Optimizer<RMSpropOptions> {
  protected override define(): Algorithm<RMSpropOptions> {
    return rmsprop;
  }
}
