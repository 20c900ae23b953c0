/** Losses by the distance of each element. */
import { check, checkOptions, noGrad, show, sign, type Tensor, tidy, where, widened } from "@opt/core";
import { checkPair } from "./pair";
import { checkReduction, type Reduction, reduce } from "./reduction";

export interface L1LossOptions {
  readonly reduction?: Reduction;
}

/** @throws OptError BAD_ARGUMENT */
export function settledL1(where: string, options: L1LossOptions) {
  checkOptions(where, options, { reduction: "string" });
  const { reduction = "mean" } = options;
  checkReduction(where, reduction);
  return { reduction };
}

/**
 * Absolute error: the mean (or sum) of |input - target|, or each of them.
 *
 * @throws OptError BAD_SHAPE if the shapes differ (nothing is broadcast); BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * l1Loss(tensor([1, 2, 3]), tensor([1, 2, 5])); // 2/3
 */
export function l1Loss(input: Tensor, target: Tensor, options: L1LossOptions = {}): Tensor {
  const { reduction } = settledL1("l1Loss", options);
  checkPair("l1Loss", input, target);
  return tidy(() => reduce(widened(input).sub(target).abs(), reduction));
}

export interface HuberLossOptions {
  readonly reduction?: Reduction;
  /** Where squares turn into lines. Default 1. */
  readonly delta?: number;
}

/** @throws OptError BAD_ARGUMENT */
export function settledHuber(where: string, options: HuberLossOptions) {
  checkOptions(where, options, { reduction: "string", delta: "number" });
  const { reduction = "mean", delta = 1 } = options;
  checkReduction(where, reduction);
  check(delta > 0, "BAD_ARGUMENT", where, () => `delta must be > 0, got ${show(delta)}.`, "Use 1.");
  return { reduction, delta };
}

/**
 * Squared error near the target, absolute error away from it (Huber 1964): d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2).
 *
 * @throws OptError BAD_SHAPE if the shapes differ (nothing is broadcast); BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * huberLoss(tensor([1, 2, 3]), tensor([1.5, 2, 6])); // (0.125 + 0 + 2.5) / 3
 */
export function huberLoss(input: Tensor, target: Tensor, options: HuberLossOptions = {}): Tensor {
  const { reduction, delta } = settledHuber("huberLoss", options);
  checkPair("huberLoss", input, target);
  return tidy(() => {
    const apart = widened(input).sub(target);
    // Of both parts in one, since the gradient of a square is NaN at infinity, also where nothing is taken of it.
    const far = noGrad(() => sign(apart).mul(delta));
    const near = where(apart.abs().lt(delta), apart, far);
    return reduce(near.mul(apart.sub(near.mul(0.5))), reduction);
  });
}

export interface SmoothL1LossOptions {
  readonly reduction?: Reduction;
  /** Where squares turn into lines; with 0 it is `l1Loss`. Default 1. */
  readonly beta?: number;
}

/** @throws OptError BAD_ARGUMENT */
export function settledSmoothL1(where: string, options: SmoothL1LossOptions) {
  checkOptions(where, options, { reduction: "string", beta: "number" });
  const { reduction = "mean", beta = 1 } = options;
  checkReduction(where, reduction);
  check(beta >= 0, "BAD_ARGUMENT", where, () => `beta must be >= 0, got ${show(beta)}.`, "Use 1.");
  return { reduction, beta };
}

/**
 * Huber's loss divided by beta: d^2 / (2 beta) where |d| < beta, else |d| - beta / 2 (Girshick 2015).
 *
 * @throws OptError BAD_SHAPE if the shapes differ (nothing is broadcast); BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * smoothL1Loss(tensor([1, 2, 3]), tensor([1.5, 2, 6])); // (0.125 + 0 + 2.5) / 3
 */
export function smoothL1Loss(input: Tensor, target: Tensor, options: SmoothL1LossOptions = {}): Tensor {
  const { reduction, beta } = settledSmoothL1("smoothL1Loss", options);
  if (beta === 0) return l1Loss(input, target, { reduction });
  checkPair("smoothL1Loss", input, target);
  return tidy(() => huberLoss(input, target, { reduction, delta: beta }).div(beta));
}
