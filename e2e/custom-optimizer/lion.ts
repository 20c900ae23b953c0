/** Lion (Chen et al. 2023), an optimizer of one's own: this file is all that it takes, on every device. */
import {
  type Algorithm,
  add,
  type BaseOptions,
  checkBetas,
  checkNotNegative,
  defineRule,
  fma,
  less,
  mul,
  neg,
  Optimizer,
  sub,
  where,
} from "@opt/core";

export interface LionOptions extends BaseOptions {
  betas: readonly [number, number];
  weightDecay: number;
}

/** p = p (1 - lr wd) - lr sign(beta1 m + (1 - beta1) g);  m = beta2 m + (1 - beta2) g */
const lionRule = defineRule({
  name: "lion",
  buffers: ["param", "grad", "expAvg"],
  scalars: ["decay", "lr", "oneMinusBeta1", "oneMinusBeta2"],
  update({ param, grad, expAvg }, h) {
    const direction = fma(h.oneMinusBeta1, sub(grad, expAvg), expAvg);
    const step = where(less(direction, 0), h.lr, where(less(0, direction), neg(h.lr), mul(direction, 0)));
    return { param: add(mul(param, h.decay), step), expAvg: fma(h.oneMinusBeta2, sub(grad, expAvg), expAvg) };
  },
});

const lion: Algorithm<LionOptions> = {
  name: "Lion",
  defaults: { lr: 1e-4, betas: [0.9, 0.99], weightDecay: 0, maximize: false },
  fixed: { maximize: false },
  validate(options) {
    checkNotNegative("Lion", "weightDecay", options.weightDecay);
    checkBetas("Lion", options.betas);
  },
  rule: () => lionRule,
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars: ({ lr, betas, weightDecay }) => ({
    decay: 1 - lr * weightDecay,
    lr,
    oneMinusBeta1: 1 - betas[0],
    oneMinusBeta2: 1 - betas[1],
  }),
};

export class Lion extends Optimizer<LionOptions> {
  protected override define(): Algorithm<LionOptions> {
    return lion;
  }
}
