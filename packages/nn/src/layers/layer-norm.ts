import { check, checkOptions, layerNorm, show, type Tensor } from "@opt/core";
import { ones } from "../initializers/initializers";
import { holdParameters } from "../module/held";
import { Module } from "../module/module";
import { checkExtents } from "./extent";
import { LAYER_OPTIONS, type LayerOptions, weightOf } from "./layer-options";

export interface LayerNormOptions extends Omit<LayerOptions, "generator"> {
  readonly eps?: number;
  readonly bias?: boolean;
}

const { dtype, device } = LAYER_OPTIONS;

/**
 * (x - mean) / sqrt(variance + eps) * weight + bias over the last axes, those of `shape` (Ba, Kiros & Hinton 2016).
 * weight begins as 1, bias as 0; the variance is the biased one, as in PyTorch.
 *
 * @throws OptError BAD_ARGUMENT for extents below 1 or eps < 0; forward: BAD_SHAPE
 */
export class LayerNorm extends Module {
  weight: Tensor;
  bias: Tensor | null;
  readonly eps: number;

  constructor(shape: number | readonly number[], options: LayerNormOptions = {}) {
    super();
    checkOptions("LayerNorm", options, { eps: "number", bias: "boolean", dtype, device });
    const { eps = 1e-5, bias = true, ...layer } = options;
    const extents: readonly number[] = Array.isArray(shape) ? shape : [shape as number];
    const isShape = extents.length > 0;
    check(isShape, "BAD_ARGUMENT", "LayerNorm", () => "the shape must have an axis, got [].", "For example [64].");
    checkExtents("LayerNorm", Object.fromEntries(extents.map((extent, i) => [`extent ${i}`, extent])));
    check(eps >= 0, "BAD_ARGUMENT", "LayerNorm", () => `eps must be >= 0, got ${show(eps)}.`, "Use 1e-5.");
    this.weight = ones(weightOf(extents, layer));
    this.bias = bias ? weightOf(extents, layer) : null;
    this.eps = eps;
    holdParameters(this, ["weight"]);
  }

  forward(x: Tensor): Tensor {
    return layerNorm(x, this.weight, this.bias, this.eps);
  }

  override describe(): string {
    return `[${this.weight.shape.join(", ")}], eps=${this.eps}, bias=${this.bias !== null}`;
  }
}
