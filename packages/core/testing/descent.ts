/** Gradient descent by a rule of one's own, for tests of what rules and counters may be. */
import { add, mul, neg } from "../src/functions";
import type { Algorithm, BaseOptions } from "../src/optimizer/algorithm";
import { Optimizer } from "../src/optimizer/optimizer";
import { defineRule, type Rule } from "../src/rule/rule";
import type { Tensor } from "../src/tensor/tensor";

export class Descent extends Optimizer<BaseOptions> {
  static next: Partial<Algorithm<BaseOptions>> = {};
  protected override define(): Algorithm<BaseOptions> {
    return {
      name: "Descent",
      defaults: { lr: 1, maximize: false },
      validate() {},
      rule: () => descent("descent", "rate", 1),
      initialCounters: { step: 0 },
      advance: ({ step }) => ({ step: step + 1 }),
      scalars: ({ lr }) => ({ rate: lr }),
      ...Descent.next,
    };
  }
}

export function descentBy(
  algorithm: Partial<Algorithm<BaseOptions>>,
  params: readonly Tensor[],
  options = {},
): Descent {
  Descent.next = algorithm;
  try {
    return new Descent(params, options);
  } finally {
    Descent.next = {}; // later files of the process make others
  }
}

export function descent(name: string, scalar: string, factor: number): Rule {
  return defineRule({
    name,
    buffers: ["param", "grad"],
    scalars: [scalar],
    update: ({ param, grad }, scalars) => ({ param: add(param, mul(neg(scalars[scalar]!), mul(grad, factor))) }),
  });
}
