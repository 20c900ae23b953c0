/** Negative log-likelihoods of numbers. */
import { check, checkOptions, checkTensor, show, type Tensor, tidy, where, widened } from "@opt/core";
import { raised } from "../similarity/raised";
import { checkPair } from "./pair";
import { checkReduction, type Reduction, reduce } from "./reduction";

export interface GaussianNllLossOptions {
  readonly reduction?: Reduction;
  /** Adds log(2 pi) / 2, which no parameter changes. Default false. */
  readonly full?: boolean;
  /** The least variance. Default 1e-6. */
  readonly eps?: number;
}

/** @throws OptError BAD_ARGUMENT */
export function settledGaussianNll(where: string, options: GaussianNllLossOptions) {
  checkOptions(where, options, { reduction: "string", full: "boolean", eps: "number" });
  const { reduction = "mean", full = false, eps = 1e-6 } = options;
  checkReduction(where, reduction);
  check(eps > 0, "BAD_ARGUMENT", where, () => `eps must be > 0, got ${show(eps)}.`, "Use 1e-6.");
  return { reduction, full, eps };
}

/**
 * Negative log-likelihood of targets under normal distributions: (log v + (input - target)^2 / v) / 2, v being the variance and at least `eps`.
 * The variance has the shape of the input, or 1 in place of one extent, or lacks the last axis. Its gradient passes the bound, as in PyTorch.
 *
 * @throws OptError BAD_SHAPE, BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * const loss = gaussianNllLoss(randn([4, 2]), randn([4, 2]), ones([4, 1]));
 */
export function gaussianNllLoss(
  input: Tensor,
  target: Tensor,
  variance: Tensor,
  options: GaussianNllLossOptions = {},
): Tensor {
  const name = "gaussianNllLoss";
  const { reduction, full, eps } = settledGaussianNll(name, options);
  checkPair(name, input, target);
  checkTensor(name, variance, "variance");
  return tidy(() => {
    const v = raised(widened(fitted(variance, input)), eps);
    const difference = widened(input).sub(target);
    const losses = v.log().add(difference.mul(difference).div(v)).mul(0.5);
    return reduce(full ? losses.add(0.5 * Math.log(2 * Math.PI)) : losses, reduction);
  });
}

/** The variance with the axes of the input. @throws OptError BAD_SHAPE */
function fitted(variance: Tensor, { shape }: Tensor): Tensor {
  const own = variance.shape;
  if (own.length === shape.length - 1 && own.every((extent, i) => extent === shape[i])) return variance.unsqueeze(-1);
  const others = own.length === shape.length ? own.filter((extent, i) => extent !== shape[i]) : [0];
  check(
    others.length === 0 || (others.length === 1 && others[0] === 1),
    "BAD_SHAPE",
    "gaussianNllLoss",
    () => `variance must be [${shape}], with one extent 1 or without the last axis, got [${own}].`,
    "Reshape it.",
  );
  return variance;
}

export interface PoissonNllLossOptions {
  readonly reduction?: Reduction;
  /** The input is the logarithm of the rate. Default true. */
  readonly logInput?: boolean;
  /** Adds Stirling's approximation of log(target!), which no parameter changes. Default false. */
  readonly full?: boolean;
  /** What is added to the rate before its logarithm, where the input is the rate. Default 1e-8. */
  readonly eps?: number;
}

const POISSON = { reduction: "string", logInput: "boolean", full: "boolean", eps: "number" } as const;

/** @throws OptError BAD_ARGUMENT */
export function settledPoissonNll(where: string, options: PoissonNllLossOptions) {
  checkOptions(where, options, POISSON);
  const { reduction = "mean", logInput = true, full = false, eps = 1e-8 } = options;
  checkReduction(where, reduction);
  return { reduction, logInput, full, eps };
}

/**
 * Negative log-likelihood of counts under Poisson distributions: exp(input) - target input, or with `logInput: false`
 * input - target log(input + eps).
 *
 * @throws OptError BAD_SHAPE if the shapes differ (nothing is broadcast); BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * poissonNllLoss(tensor([0, 1]), tensor([2, 3])); // (1 + e - 3) / 2
 */
export function poissonNllLoss(input: Tensor, target: Tensor, options: PoissonNllLossOptions = {}): Tensor {
  const name = "poissonNllLoss";
  const { reduction, logInput, full, eps } = settledPoissonNll(name, options);
  checkPair(name, input, target);
  return tidy(() => {
    const x = widened(input);
    const y = widened(target);
    const losses = logInput ? x.exp().sub(y.mul(x)) : x.sub(y.mul(x.add(eps).log()));
    return reduce(full ? losses.add(stirling(y)) : losses, reduction);
  });
}

/** n log n - n + log(2 pi n) / 2, and 0 up to n = 1. */
function stirling(target: Tensor): Tensor {
  const isLarge = target.gt(1);
  const n = where(isLarge, target, 1);
  const terms = n
    .mul(n.log())
    .sub(n)
    .add(
      n
        .mul(2 * Math.PI)
        .log()
        .mul(0.5),
    );
  return where(isLarge, terms, 0);
}
