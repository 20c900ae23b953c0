/** Gradient clipping: by value, by the norm of each tensor, by the norm of all together. */
import { zeros } from "../../create";
import { replacing, tidy } from "../../device/scope";
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import { elementwise } from "../../ops";
import { defineRule } from "../../rule/rule";
import { maximum, minimum, neg } from "../../rule/symbols";
import { noGrad } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import { checkNotNegative } from "../check";
import { launchInPlace } from "../in-place";
import { itemsOf } from "../parameters";
import { clipFactor, gradientsOf, norms, scaleInPlace, totalNorm } from "./norm";

export interface ClipNormOptions {
  /** The p of the norm: any number > 0, or Infinity for the largest magnitude. */
  readonly normType?: number;
  /** Throw NOT_FINITE instead of scaling by a NaN or infinite norm. Reads the norm, so only where the device can be read at once. */
  readonly errorIfNonfinite?: boolean;
}

/** The parameters, each a tensor. @throws OptError BAD_ARGUMENT */
export function listed(where: string, params: Iterable<Tensor> | Tensor): Tensor[] {
  const list = itemsOf(where, params);
  for (const param of list) {
    checkValue(param instanceof Tensor, where, "params", "tensors without names", param, "Pass model.parameters().");
    param.checkSteps?.([{ params: list }]);
  }
  return list;
}

/**
 * Scales all gradients in place so that their norm together is at most `maxNorm`: g *= min(1, maxNorm / (norm + 1e-6)).
 * Source: torch.nn.utils.clip_grad_norm_.
 *
 * @returns the total norm before clipping, a tensor of one element on the gradients' device (0 without gradients).
 * Outside of tidy it is freed by the next call for the same parameters: read it before, or `keep` it.
 * @throws OptError BAD_ARGUMENT; DEVICE_MISMATCH; NOT_FINITE if `errorIfNonfinite` and the norm is NaN or infinite (nothing is scaled)
 * @example
 * crossEntropy(model.forward(x), y).backward();
 * const norm = clipGradNorm(model.parameters(), 1.0);
 */
export function clipGradNorm(
  params: Iterable<Tensor> | Tensor,
  maxNorm: number,
  options: ClipNormOptions = {},
): Tensor {
  const where = "clipGradNorm";
  checkNotNegative(where, "maxNorm", maxNorm);
  checkOptions(where, options, { normType: "number", errorIfNonfinite: "boolean" });
  const { normType = 2, errorIfNonfinite = false } = options;
  check(
    normType > 0,
    "BAD_ARGUMENT",
    where,
    () => `normType must be a number > 0 or Infinity, got ${normType}.`,
    "The default is 2.",
  );
  const list = listed(where, params);
  const grads = gradientsOf(list);
  if (grads.length === 0) return zeros([], list.length > 0 ? { device: list[0]!.device } : {});
  checkOneDevice(where, grads);
  const norm = noGrad(() =>
    tidy(() => {
      const total = totalNorm(grads, normType);
      check(
        !errorIfNonfinite || Number.isFinite(Number(total)),
        "NOT_FINITE",
        where,
        () => `the norm of the gradients is ${Number(total)}.`,
        "Look for overflow, or leave out errorIfNonfinite.",
      );
      scaleInPlace(grads, clipFactor(total, maxNorm));
      return total;
    }),
  );
  return replacing(list[0]!, norm);
}

/**
 * Scales each gradient by itself, in place, so that its 2-norm is at most `maxNorm`: g *= maxNorm / max(norm, maxNorm).
 * Source: Paddle's ClipGradByNorm, Keras' clipnorm.
 *
 * @throws OptError BAD_ARGUMENT, DEVICE_MISMATCH
 */
export function clipGradNormEach(params: Iterable<Tensor> | Tensor, maxNorm: number): void {
  const where = "clipGradNormEach";
  checkNotNegative(where, "maxNorm", maxNorm);
  const grads = gradientsOf(listed(where, params));
  if (grads.length === 0 || maxNorm === Number.POSITIVE_INFINITY) return;
  checkOneDevice(where, grads);
  noGrad(() =>
    tidy(() => {
      const factors = elementwise("div", [maxNorm, norms(grads, 2).maximum(maxNorm)]);
      grads.forEach((grad, i) => {
        scaleInPlace([grad], factors.slice(i, i + 1));
      });
    }),
  );
}

export const CLAMP = /* @__PURE__ */ defineRule({
  name: "clamp",
  buffers: ["grad"],
  scalars: ["limit"],
  update: ({ grad }, { limit }) => ({ grad: maximum(minimum(grad, limit), neg(limit)) }),
});

/**
 * Clamps every gradient to [-clipValue, clipValue] in place, in one launch per dtype. A NaN stays one.
 * Source: torch.nn.utils.clip_grad_value_.
 *
 * @throws OptError BAD_ARGUMENT
 */
export function clipGradValue(params: Iterable<Tensor> | Tensor, clipValue: number): void {
  checkNotNegative("clipGradValue", "clipValue", clipValue);
  const grads = gradientsOf(listed("clipGradValue", params));
  launchInPlace(CLAMP, grads, () => clipValue);
}

/** The norm of the gradients that parameters have, once unscaled. Without gradients undefined. */
export function limitedNorm(where: string, params: readonly Tensor[], unscale: Tensor | undefined): Tensor | undefined {
  const grads = gradientsOf(params.map((param) => param.spanOf ?? param));
  if (grads.length === 0) return undefined;
  checkOneDevice(`${where} clip.norm`, grads);
  const norm = totalNorm(grads, 2);
  return unscale ? norm.mul(unscale) : norm;
}

export function checkOneDevice(where: string, grads: readonly Tensor[]): void {
  const { device } = grads[0]!;
  for (const grad of grads) {
    check(
      grad.device === device,
      "DEVICE_MISMATCH",
      where,
      () => `gradients must be on one device, got ${device.name} and ${grad.device.name}.`,
      "Clip each device's parameters by themselves.",
    );
  }
}
