/** Kullback-Leibler divergence. */
import { checkOptions, type Tensor, tidy, where, widened } from "@opt/core";
import { checkPair } from "./pair";
import { checkReduction, type Reduction, reduce } from "./reduction";

export interface KlDivOptions {
  /** "batchMean" divides the sum by the first extent, as the definition of the divergence has it. Default "mean", as PyTorch's. */
  readonly reduction?: Reduction | "batchMean";
  /** The target too is log-probabilities. Default false. */
  readonly logTarget?: boolean;
}

/** @throws OptError BAD_ARGUMENT */
export function settledKlDiv(where: string, options: KlDivOptions) {
  checkOptions(where, options, { reduction: "string", logTarget: "boolean" });
  const { reduction = "mean", logTarget = false } = options;
  checkReduction(where, reduction, ["batchMean", "mean", "sum", "none"]);
  return { reduction, logTarget };
}

/**
 * target (log target - input), elementwise: `input` is log-probabilities. What has probability 0 in the target counts for nothing.
 *
 * @throws OptError BAD_SHAPE if the shapes differ; BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * const [logits, target] = [randn([4, 3]), randn([4, 3]).softmax()];
 * const divergence = klDiv(logits.logSoftmax(), target, { reduction: "batchMean" });
 */
export function klDiv(input: Tensor, target: Tensor, options: KlDivOptions = {}): Tensor {
  const { reduction, logTarget } = settledKlDiv("klDiv", options);
  checkPair("klDiv", input, target);
  return tidy(() => {
    const p = widened(target);
    const losses = logTarget ? p.exp().mul(p.sub(input)) : entropyOf(p).sub(p.mul(input));
    if (reduction !== "batchMean") return reduce(losses, reduction);
    return losses.sum().div(input.shape[0] ?? 1);
  });
}

/** p log p, which is 0 at 0. */
function entropyOf(p: Tensor): Tensor {
  return p.mul(where(p.eq(0), 1, p).log());
}
