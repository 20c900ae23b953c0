/** Rprop: options, rule, scalars and class. */
import {
  type Algorithm,
  add,
  type BaseOptions,
  check,
  defineRule,
  less,
  maximum,
  minimum,
  mul,
  Optimizer,
  type Rule,
  where,
} from "@opt/core";

export interface RpropOptions extends BaseOptions {
  /** The first step size of each element, >= 0. Default 1e-2. */
  lr: number;
  /** Factors of a step size where the gradient changes its sign, in (0, 1), and where it keeps it, above 1. Default [0.5, 1.2]. */
  etas: readonly [number, number];
  /** The smallest and the largest step size, >= 0. Default [1e-6, 50]. */
  stepSizes: readonly [number, number];
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

/** The update of one element in PyTorch's order of operations. The sign of NaN is 0, as PyTorch's. */
export const rpropRule = /* @__PURE__ */ defineRule({
  name: "rprop",
  buffers: ["param", "grad", "prev", "stepSize"],
  nonNegative: ["stepSize"],
  scalars: ["etaMinus", "etaPlus", "smallest", "largest"],
  update({ param, grad, prev, stepSize }, { etaMinus, etaPlus, smallest, largest }) {
    const product = mul(grad, prev);
    const turns = less(product, 0);
    const factor = where(less(0, product), etaPlus, where(turns, etaMinus, 1));
    const size = minimum(maximum(mul(stepSize, factor), smallest), largest);
    const g = where(turns, 0, grad);
    const negSign = where(less(0, g), -1, where(less(g, 0), 1, 0));
    return { param: add(param, mul(negSign, size)), prev: g, stepSize: size };
  },
});

/** Every variant, for kernel builds and tests. */
export const rpropRules: readonly Rule[] = [rpropRule];

const rprop: Algorithm<RpropOptions> = {
  name: "Rprop",
  defaults: { lr: 1e-2, etas: [0.5, 1.2], stepSizes: [1e-6, 50], maximize: false },
  validate({ etas, stepSizes }) {
    const arePairs = [etas, stepSizes].every((pair) => Array.isArray(pair) && pair.length === 2);
    check(
      arePairs,
      "BAD_ARGUMENT",
      "Rprop",
      () => `etas and stepSizes must be pairs of numbers, got ${String(etas)} and ${String(stepSizes)}.`,
      "The defaults are [0.5, 1.2] and [1e-6, 50].",
    );
    check(
      0 < etas[0] && etas[0] < 1 && 1 < etas[1],
      "BAD_ARGUMENT",
      "Rprop",
      () => `etas must be 0 < etas[0] < 1 < etas[1], got ${etas}.`,
      "The default is [0.5, 1.2].",
    );
    const areSizes = 0 <= stepSizes[0] && stepSizes[0] <= stepSizes[1];
    check(
      areSizes,
      "BAD_ARGUMENT",
      "Rprop",
      () => `stepSizes must be 0 <= stepSizes[0] <= stepSizes[1], got ${stepSizes}.`,
      "The default is [1e-6, 50].",
    );
  },
  rule: () => rpropRule,
  initialState: ({ lr }) => ({ step_size: lr }),
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars: ({ etas: [etaMinus, etaPlus], stepSizes: [smallest, largest] }) => ({
    etaMinus,
    etaPlus,
    smallest,
    largest,
  }),
};

/**
 * Rprop: each element has a step size of its own. It grows while the gradient keeps its sign and shrinks where that changes; how
 * large the gradient is does not matter.
 *
 *     size *= etas[1] where grad * prev > 0,  etas[0] where grad * prev < 0 (there grad = 0)
 *     size = min(max(size, stepSizes[0]), stepSizes[1])          p -= sign(grad) * size          prev = grad
 *
 * It is meant for whole batches: the noise of small ones changes signs. The numbers are those of torch.optim.Rprop (PyTorch 2.13), bit
 * for bit in float32.
 * Source: Riedmiller & Braun, "A Direct Adaptive Method for Faster Backpropagation Learning: The RPROP Algorithm" (1993).
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { Rprop } from "@opt/rprop";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new Rprop([w], { lr: 0.1 });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class Rprop extends Optimizer<RpropOptions> {
  protected override define(): Algorithm<RpropOptions> {
    return rprop;
  }
}
