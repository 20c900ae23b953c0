import { layerNorm, OptError, type Tensor } from "@opt/core";
import { checkExtents } from "./extent";
import { ones } from "./initializers";
import { type LayerOptions, weightOf } from "./layer-options";
import { Module } from "./module";

export interface LayerNormOptions extends Omit<LayerOptions, "generator"> {
  readonly eps?: number;
  readonly bias?: boolean;
}

/**
 * (x - mean) / sqrt(variance + eps) * weight + bias over the last axes, those of `shape` (Ba, Kiros & Hinton 2016).
 * weight begins as 1, bias as 0; the variance is the biased one, as in PyTorch.
 *
 * @throws OptError BAD_ARGUMENT for extents below 1 or eps < 0; forward: BAD_SHAPE
 */
export class LayerNorm extends Module {
  readonly weight: Tensor;
  readonly bias: Tensor | null;
  readonly eps: number;

  constructor(shape: number | readonly number[], { eps = 1e-5, bias = true, ...options }: LayerNormOptions = {}) {
    super();
    const extents = typeof shape === "number" ? [shape] : shape;
    checkExtents("LayerNorm", Object.fromEntries(extents.map((extent, i) => [`extent ${i}`, extent])));
    if (!(eps >= 0)) throw new OptError("BAD_ARGUMENT", "LayerNorm", `eps must be >= 0, got ${eps}.`, "Use 1e-5.");
    this.weight = ones(weightOf(extents, options));
    this.bias = bias ? weightOf(extents, options) : null;
    this.eps = eps;
  }

  forward(x: Tensor): Tensor {
    return layerNorm(x, this.weight, this.bias, this.eps);
  }
}
