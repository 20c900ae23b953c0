/** SGD: options, the update of one element in PyTorch's order of operations, its numbers of a step, and the class. */
import {
  type Algorithm,
  add,
  type BaseOptions,
  checkBoolean,
  checkNotNegative,
  defineRule,
  type Expression,
  everyVariant,
  fma,
  less,
  mul,
  OptError,
  Optimizer,
  ruleByVariant,
  Tensor,
  type VariantOf,
  where,
} from "@opt/core";

export interface SGDOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 1e-3. */
  lr: number;
  /** What is kept of the momentum from step to step, >= 0; 0: none is kept at all. Default 0. */
  momentum: number;
  /** How much less of the gradient goes into the momentum, >= 0. Default 0. */
  dampening: number;
  /** Weight decay, >= 0. Default 0. */
  weightDecay: number;
  /** Step along the gradient and the momentum after it; needs a momentum and no dampening. Default false. */
  nesterov: boolean;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

const choices = {
  momentum: ["none", "plain", "nesterov"],
  /** Weight decay, added to the gradient. */
  decay: [false, true],
  /** Whether products round before they are added, as PyTorch's of complex numbers do. */
  separate: [false, true],
} as const;

/** What makes one variant of the rule different from another. */
export type SGDVariant = VariantOf<typeof choices>;

/** The rule of a variant; the same object for the same variant. */
export const sgdRule = /* @__PURE__ */ ruleByVariant(choices, ({ momentum, decay, separate }) => {
  const kind = momentum === "none" ? "" : momentum === "plain" ? "Momentum" : "Nesterov";
  const multiplyAdd: typeof fma = separate ? (a, b, c) => add(mul(a, b), c) : fma;
  return defineRule({
    name: `sgd${kind}${decay ? "L2" : ""}${separate ? "Complex" : ""}`,
    buffers: ["param", "grad", ...(momentum === "none" ? [] : ["momentumBuffer"])],
    scalars: [
      ...(decay ? ["decay"] : []),
      ...(momentum === "none" ? [] : ["momentum", "oneMinusDampening", "isFirst"]),
      "negLr",
    ],
    update(buffers, scalars) {
      const { param, grad, momentumBuffer } = buffers as Record<string, Expression> &
        Record<"param" | "grad", Expression>;
      const h = scalars as Record<string, Expression>;
      const g = decay ? multiplyAdd(h.decay!, param, grad) : grad;
      if (momentum === "none") return { param: multiplyAdd(h.negLr!, g, param) };
      // The first momentum is the gradient itself, whatever the dampening.
      const later = multiplyAdd(h.oneMinusDampening!, g, mul(momentumBuffer!, h.momentum!));
      const m = where(less(0, h.isFirst!), g, later);
      const direction = momentum === "nesterov" ? multiplyAdd(h.momentum!, m, g) : m;
      return { param: multiplyAdd(h.negLr!, direction, param), momentumBuffer: m };
    },
  });
});

/** Every variant, for kernel builds and tests. */
export const sgdRules = /* @__PURE__ */ everyVariant(choices, sgdRule);

const variantOf = ({ momentum, weightDecay, nesterov }: SGDOptions) => ({
  momentum: momentum === 0 ? ("none" as const) : nesterov ? ("nesterov" as const) : ("plain" as const),
  decay: weightDecay !== 0,
});

const sgd: Algorithm<SGDOptions> = {
  name: "SGD",
  defaults: { lr: 1e-3, momentum: 0, dampening: 0, weightDecay: 0, nesterov: false, maximize: false },
  validate(options) {
    for (const name of ["momentum", "dampening", "weightDecay"] as const) checkNotNegative("SGD", name, options[name]);
    checkBoolean("SGD", "nesterov", options.nesterov);
    const { nesterov, momentum, dampening } = options;
    if (!nesterov || (momentum > 0 && dampening === 0)) return;
    throw new OptError(
      "BAD_ARGUMENT",
      "SGD",
      `nesterov needs a momentum above 0 and no dampening, got momentum ${momentum} and dampening ${dampening}.`,
      "Pass momentum: 0.9, or leave nesterov out.",
    );
  },
  rule: (options) => sgdRule({ ...variantOf(options), separate: false }),
  complexRule: (options) => sgdRule({ ...variantOf(options), separate: true }),
  initialCounters: { step: 0 },
  /** Counts the steps with momentum. Without, there is no state, as in PyTorch. */
  advance: (counters, { momentum }) => (momentum === 0 ? counters : { step: counters.step + 1 }),
  /** PyTorch counts no steps: where there is a momentum, there was a first one. */
  counted: ({ step, momentum_buffer }) => ({
    step: step === undefined ? Number(momentum_buffer instanceof Tensor) : (step as number),
  }),
  scalars: ({ lr, momentum, dampening, weightDecay }, { step }, { sub, neg }) => ({
    decay: weightDecay,
    momentum,
    oneMinusDampening: sub(1, dampening),
    isFirst: step === 1 ? 1 : 0,
    negLr: neg(lr),
  }),
};

/**
 * Stochastic gradient descent, with momentum by the option `momentum`: what Paddle and MindSpore call Momentum.
 *
 *     g = grad (+ weightDecay * p)          m = momentum * m + (1 - dampening) g          (the first time m = g)
 *     p -= lr * g          with momentum: p -= lr * m          nesterov: p -= lr * (g + momentum * m)
 *
 * The numbers are those of torch.optim.SGD (PyTorch 2.13), bit for bit in float32.
 * Sources: Polyak (1964); Sutskever et al., "On the importance of initialization and momentum in deep learning" (2013).
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { SGD } from "@opt/sgd";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new SGD([w], { lr: 0.1, momentum: 0.9 });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class SGD extends Optimizer<SGDOptions> {
  protected override define(): Algorithm<SGDOptions> {
    return sgd;
  }
}
