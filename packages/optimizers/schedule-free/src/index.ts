/** Schedule-free AdamW: options, rule, scalars and class. */
import {
  type Algorithm,
  type Arithmetic,
  add,
  type BaseOptions,
  type Counters,
  check,
  checkBetas,
  checkBoolean,
  checkNotNegative,
  defineRule,
  div,
  fma,
  less,
  mul,
  noGrad,
  Optimizer,
  type Rule,
  sqrt,
  sub,
  Tensor,
  tidy,
  viewAsReal,
  where,
} from "@opt/core";

export interface ScheduleFreeAdamWOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 2.5e-3. */
  lr: number;
  /** Weight of the average in the weights that are trained, in (0, 1), and decay of the squares, in [0, 1). Default [0.9, 0.999]. */
  betas: readonly [number, number];
  /** Added to the denominator, >= 0. Default 1e-8. */
  eps: number;
  /** Decoupled weight decay, >= 0. Default 0. */
  weightDecay: number;
  /** Steps in which the learning rate grows from 0, >= 0. Default 0. */
  warmupSteps: number;
  /** Step t has the weight t^r in the average, >= 0. Default 0. */
  r: number;
  /** A step also has the weight of its largest learning rate so far to this power, >= 0. Default 2. */
  weightLrPower: number;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
  /** The parameters are the weights to train, not the average. Set it by `train()` and `eval()`. Default true. */
  training: boolean;
}

/** The update of one element in the order of operations of the authors' program: without weight decay, and with it. */
export const scheduleFreeRules: readonly Rule[] = /* @__PURE__ */ [false, true].map((decays) =>
  defineRule({
    name: decays ? "scheduleFreeDecoupled" : "scheduleFree",
    buffers: ["param", "grad", "z", "expAvgSq"],
    nonNegative: ["expAvgSq"],
    scalars: [
      ...(["beta2", "oneMinusBeta2", "biasCorrection2", "eps"] as const),
      ...(decays ? (["decay"] as const) : []),
      ...(["average", "negStep", "negLr"] as const),
    ],
    update({ param, grad, z, expAvgSq }, h) {
      const squares = fma(mul(h.oneMinusBeta2, grad), grad, mul(expAvgSq, h.beta2));
      const ratio = div(grad, add(sqrt(div(squares, h.biasCorrection2)), h.eps));
      const direction = decays ? fma(h.decay, param, ratio) : ratio;
      const way = sub(z, param);
      const nearer = where(less(h.average, 0.5), fma(h.average, way, param), fma(sub(h.average, 1), way, z));
      return { param: fma(h.negStep, direction, nearer), z: fma(h.negLr, direction, z), expAvgSq: squares };
    },
  }),
);

const WHERE = "ScheduleFreeAdamW";

/** The weight of a step in the average. */
function weightOf(counters: Counters, { r, weightLrPower }: ScheduleFreeAdamWOptions, { mul, pow }: Arithmetic) {
  return mul(pow(counters.step, r), pow(counters.lr_max!, weightLrPower));
}

/** The learning rate of a step. */
function lrAt(step: number, { lr, warmupSteps }: ScheduleFreeAdamWOptions, { mul }: Arithmetic): number {
  return step < warmupSteps ? mul(lr, step / warmupSteps) : lr;
}

const scheduleFree: Algorithm<ScheduleFreeAdamWOptions> = {
  name: WHERE,
  defaults: {
    lr: 2.5e-3,
    betas: [0.9, 0.999],
    eps: 1e-8,
    weightDecay: 0,
    warmupSteps: 0,
    r: 0,
    weightLrPower: 2,
    maximize: false,
    training: true,
  },
  validate(options) {
    const { betas, training } = options;
    checkBetas(WHERE, betas);
    check(betas[0] > 0, "BAD_ARGUMENT", WHERE, () => "betas[0] must be above 0, got 0.", "The default is 0.9.");
    for (const name of ["eps", "weightDecay", "warmupSteps", "r", "weightLrPower"] as const) {
      checkNotNegative(WHERE, name, options[name]);
    }
    checkBoolean(WHERE, "training", training);
  },
  rule: ({ weightDecay }) => scheduleFreeRules[weightDecay === 0 ? 0 : 1]!,
  initialState: () => ({ z: "param" }),
  initialCounters: { step: 0, weight_sum: 0, lr_max: 0 },
  advance({ step, weight_sum, lr_max }, options, arithmetic) {
    check(
      options.training,
      "BAD_STATE",
      WHERE,
      () => "step() needs the weights that are trained, got those of eval().",
      "Call optimizer.train() before.",
    );
    const next = { step: step + 1, lr_max: arithmetic.maximum(lrAt(step + 1, options, arithmetic), lr_max!) };
    return { ...next, weight_sum: arithmetic.add(weight_sum!, weightOf({ ...next }, options, arithmetic)) };
  },
  scalars(options, counters, arithmetic) {
    const { betas, eps, weightDecay } = options;
    const [beta1, beta2] = betas;
    const { sub, mul, div, neg, pow, less, where } = arithmetic;
    const { step, weight_sum } = counters;
    const lr = lrAt(step, options, arithmetic);
    const share = div(weightOf(counters, options, arithmetic), weight_sum!);
    const average = where(less(0, weight_sum!), share, 0);
    return {
      beta2,
      oneMinusBeta2: sub(1, beta2),
      biasCorrection2: sub(1, pow(beta2, step)),
      eps,
      decay: weightDecay,
      average,
      negStep: mul(lr, sub(mul(beta1, sub(1, average)), 1)),
      negLr: neg(lr),
    };
  },
};

/**
 * Schedule-free AdamW: a constant learning rate that does as well as a schedule, without knowing when the training ends.
 *
 *     v = beta2 v + (1 - beta2) grad^2          d = grad / (sqrt(v / (1 - beta2^t)) + eps) + weightDecay * y
 *     z -= lr_t d          x = (1 - c) x + c z          y = (1 - beta1) z + beta1 x
 *     lr_t = lr min(1, t / warmupSteps)          c = w_t / (w_1 + ... + w_t)          w_t = t^r max(lr_1, ..., lr_t)^weightLrPower
 *
 * Gradients are taken at y, so the parameters are y while you train. Evaluate and save x, their average: `eval()` puts x in the
 * parameters' place, `train()` brings y back. State has `z`, and x is computed from y and z. State dicts remember which of the two the
 * parameters are. A running batch norm needs some forward passes at x before you evaluate.
 * Source: Defazio et al., "The Road Less Scheduled" (2024), and its authors' program, version 1.4. A parameter without a gradient skips a
 * step, which there counts for all parameters of a group.
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; BAD_STATE in `step()` after `eval()`; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { ScheduleFreeAdamW } from "@opt/schedule-free";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new ScheduleFreeAdamW([w], { lr: 0.01, warmupSteps: 100 });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.eval(); // w is the average: evaluate and save it
 * optimizer.train();
 */
export class ScheduleFreeAdamW extends Optimizer<ScheduleFreeAdamWOptions> {
  protected override define(): Algorithm<ScheduleFreeAdamWOptions> {
    return scheduleFree;
  }

  /** Puts y, the weights to train, in the parameters' place. @throws OptError UNSUPPORTED in a compiled function */
  train(): void {
    this.#change(true, (beta1) => 1 - beta1);
  }

  /** Puts x, the average, in the parameters' place. @throws OptError UNSUPPORTED in a compiled function */
  eval(): void {
    this.#change(false, (beta1) => 1 - 1 / beta1);
  }

  #change(training: boolean, weightOf: (beta1: number) => number): void {
    const { state } = this.stateDict();
    for (const group of this.groups) {
      if (group.training === training) continue;
      group.training = training;
      const weight = weightOf(group.betas[0]);
      group.params.forEach((param, i) => {
        const { z, master_param = param } = { ...state[group.names[i]!] };
        if (z instanceof Tensor && master_param instanceof Tensor) move(param, master_param, z, weight);
      });
    }
  }
}

/** Moves a parameter and its float32 copy a part of the way to z: from the nearer end, as PyTorch's lerp. */
function move(param: Tensor, copy: Tensor, z: Tensor, weight: number): void {
  noGrad(() =>
    tidy(() => {
      const [from, to] = [numbersOf(copy).to(numbersOf(z).dtype), numbersOf(z)];
      const way = to.sub(from);
      const moved = Math.abs(weight) < 0.5 ? fma(weight, way, from) : fma(weight - 1, way, to);
      numbersOf(copy).set(moved.to(numbersOf(copy).dtype));
      if (copy !== param) param.set(copy.to(param.dtype));
    }),
  );
}

const numbersOf = (x: Tensor) => (x.dtype === "c64" ? viewAsReal(x) : x);
