// A new optimizer is one rule and one class, in one file, and needs nothing of any device.
import "@opt/testkit";
import { describe, expect, it } from "vitest";
import {
  type Algorithm,
  add,
  type BaseOptions,
  checkBetas,
  defineRule,
  fma,
  less,
  mul,
  Optimizer,
  parameter,
  sub,
  tensor,
  where,
} from "../index";

/** Lion (Chen et al. 2023). The sign by two selects: 0 stays 0. */
const lionRule = defineRule({
  name: "lion",
  buffers: ["param", "grad", "expAvg"],
  scalars: ["oneMinusBeta1", "oneMinusBeta2", "negLr", "decay"],
  update({ param, grad, expAvg }, h) {
    const direction = fma(h.oneMinusBeta1, sub(grad, expAvg), expAvg);
    const sign = where(less(direction, 0), -1, where(less(0, direction), 1, direction));
    return {
      param: add(mul(param, h.decay), mul(h.negLr, sign)),
      expAvg: fma(h.oneMinusBeta2, sub(grad, expAvg), expAvg),
    };
  },
});

interface LionOptions extends BaseOptions {
  betas: readonly [number, number];
  weightDecay: number;
}

const algorithm: Algorithm<LionOptions> = {
  name: "Lion",
  defaults: { lr: 1e-4, betas: [0.9, 0.99], weightDecay: 0, maximize: false },
  validate: ({ betas }) => checkBetas("Lion", betas),
  rule: () => lionRule,
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars: ({ lr, betas: [beta1, beta2], weightDecay }) => ({
    oneMinusBeta1: 1 - beta1,
    oneMinusBeta2: 1 - beta2,
    negLr: -lr,
    decay: 1 - lr * weightDecay,
  }),
};

class Lion extends Optimizer<LionOptions> {
  protected override define() {
    return algorithm;
  }
}

describe("Lion", () => {
  it("takes the paper's steps", async () => {
    const w = parameter([1, -2, 3], { dtype: "f64" });
    const optimizer = new Lion([w], { lr: 0.1, weightDecay: 0.5 });
    let [expected, m] = [
      [1, -2, 3],
      [0, 0, 0],
    ];
    for (const gradient of [
      [1, 0, -1],
      [-0.05, 2, 3],
      [0, 0, 0],
    ]) {
      w.grad = tensor(gradient, { dtype: "f64" });
      optimizer.step();
      expected = expected.map((p, i) => p * (1 - 0.05) - 0.1 * Math.sign(0.9 * m[i]! + 0.1 * gradient[i]!));
      m = m.map((x, i) => 0.99 * x + 0.01 * gradient[i]!);
    }
    expect(await w.data()).toAgreeWith(expected, { absolute: 1e-14, relative: 0 });
    expect(await (optimizer.stateDict().state["0"]!.exp_avg as typeof w).data()).toAgreeWith(m, {
      absolute: 1e-14,
      relative: 0,
    });
  });
});
