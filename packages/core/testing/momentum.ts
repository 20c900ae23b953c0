/** An optimizer for tests, with everything that the loop knows: state, options, counters, a fixed rule. */
import { add, fma, mul, sub } from "../src/functions";
import type { Algorithm, BaseOptions } from "../src/optimizer/algorithm";
import { checkNotNegative } from "../src/optimizer/check";
import { Optimizer } from "../src/optimizer/optimizer";
import type { Expression } from "../src/rule/expression";
import { defineRule } from "../src/rule/rule";

export interface MomentumOptions extends BaseOptions {
  momentum: number;
  /** Keeps a second running average. */
  averaged: boolean;
}

const rules = [false, true].map((averaged) =>
  defineRule({
    name: `momentum${averaged ? "Averaged" : ""}`,
    buffers: ["param", "grad", "velocity", ...(averaged ? ["gradAvg"] : [])],
    scalars: ["momentum", "negLr"],
    update(buffers, { momentum, negLr }) {
      const { param, grad, velocity, gradAvg } = buffers as Record<string, Expression>;
      const v = fma(momentum, velocity!, grad!);
      return {
        param: add(param!, mul(negLr, v)),
        velocity: v,
        ...(averaged ? { gradAvg: fma(0.5, sub(grad!, gradAvg!), gradAvg!) } : {}),
      };
    },
  }),
);

const algorithm: Algorithm<MomentumOptions> = {
  name: "Momentum",
  defaults: { lr: 0.1, momentum: 0.9, maximize: false, averaged: false },
  validate: ({ momentum }) => checkNotNegative("Momentum", "momentum", momentum),
  rule: ({ averaged }) => rules[Number(averaged)]!,
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  // Warmed up over the first steps, so that a wrong count shows.
  scalars: ({ lr, momentum }, { step }) => ({ momentum: momentum * (1 - 1 / (step + 1)), negLr: -lr }),
};

export class Momentum extends Optimizer<MomentumOptions> {
  protected override define(): Algorithm<MomentumOptions> {
    return algorithm;
  }
}
