import { check, checkOptions, checkTensor, show, type Tensor, tidy } from "@opt/core";
import { ones } from "../../initializers/initializers";
import { holdParameters } from "../../module/held";
import { Module } from "../../module/module";
import { checkExtents } from "../extent";
import { LAYER_OPTIONS, type LayerOptions, weightOf } from "../layer-options";

export interface RMSNormOptions extends Omit<LayerOptions, "generator"> {
  /** null: the distance from 1 to the next number of the dtype that is computed in. Default null, as PyTorch's. */
  readonly eps?: number | null;
  /** Trains a weight. Default true. */
  readonly elementwiseAffine?: boolean;
}

const { dtype, device } = LAYER_OPTIONS;

/**
 * x / sqrt(mean(x^2) + eps) * weight over the last axes, those of `shape` (Zhang & Sennrich 2019). 16-bit inputs are computed in f32.
 *
 * @throws OptError BAD_ARGUMENT for extents below 1 or eps < 0; forward: BAD_SHAPE
 * @example
 * const normal = new RMSNorm(8).forward(rand([2, 8])); // [2, 8]
 */
export class RMSNorm extends Module {
  weight: Tensor | null;
  readonly eps: number | null;
  readonly #shape: readonly number[];

  constructor(shape: number | readonly number[], options: RMSNormOptions = {}) {
    super();
    checkOptions("RMSNorm", options, { eps: "any", elementwiseAffine: "boolean", dtype, device });
    const { eps = null, elementwiseAffine = true, ...place } = options;
    const extents: readonly number[] = Array.isArray(shape) ? shape : [shape as number];
    const isShape = extents.length > 0;
    check(isShape, "BAD_ARGUMENT", "RMSNorm", () => "the shape must have an axis, got [].", "For example [64].");
    checkExtents("RMSNorm", Object.fromEntries(extents.map((extent, i) => [`extent ${i}`, extent])));
    const fits = eps === null || (typeof eps === "number" && eps >= 0);
    check(fits, "BAD_ARGUMENT", "RMSNorm", () => `eps must be null or >= 0, got ${show(eps)}.`, "Use 1e-5.");
    this.weight = elementwiseAffine ? ones(weightOf(extents, place)) : null;
    this.eps = eps;
    this.#shape = [...extents];
    holdParameters(this);
  }

  forward(x: Tensor): Tensor {
    checkTensor("RMSNorm", x);
    const shape = this.#shape;
    const first = x.shape.length - shape.length;
    check(
      first >= 0 && shape.every((extent, i) => extent === x.shape[first + i]),
      "BAD_SHAPE",
      "RMSNorm",
      () => `the input must end with the shape [${shape}], got [${x.shape}].`,
      "Normalise over the last axes.",
    );
    return tidy(() => {
      const isHalf = x.dtype === "f16" || x.dtype === "bf16";
      const wide = isHalf ? x.to("f32") : x;
      const eps = this.eps ?? (wide.dtype === "f64" ? Number.EPSILON : 2 ** -23);
      const axes = shape.map((_, i) => first + i);
      const normal = wide.div(wide.mul(wide).mean(axes, true).add(eps).sqrt());
      const result = this.weight === null ? normal : normal.mul(this.weight);
      return isHalf ? result.to(x.dtype) : result;
    });
  }

  override describe(): string {
    return `[${this.#shape.join(", ")}], eps=${this.eps}, elementwiseAffine=${this.weight !== null}`;
  }
}
