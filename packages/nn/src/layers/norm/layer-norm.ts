import { check, checkOptions, checkTensor, layerNorm, ones as onesOf, show, type Tensor, tidy } from "@opt/core";
import { ones } from "../../initializers/initializers";
import { holdParameters } from "../../module/held";
import { Module } from "../../module/module";
import { checkExtents } from "../extent";
import { LAYER_OPTIONS, type LayerOptions, weightOf } from "../layer-options";

export interface LayerNormOptions extends Omit<LayerOptions, "generator"> {
  readonly eps?: number;
  /** Of a weight that is trained. Default true. */
  readonly bias?: boolean;
  /** Trains a weight, and with `bias` a bias. Default true. */
  readonly elementwiseAffine?: boolean;
}

const { dtype, device } = LAYER_OPTIONS;

/**
 * (x - mean) / sqrt(variance + eps) * weight + bias over the last axes, those of `shape` (Ba, Kiros & Hinton 2016).
 * weight begins as 1, bias as 0; the variance is the biased one, as in PyTorch.
 *
 * @throws OptError BAD_ARGUMENT for extents below 1 or eps < 0; forward: BAD_SHAPE
 */
export class LayerNorm extends Module {
  weight: Tensor | null;
  bias: Tensor | null;
  readonly eps: number;
  readonly #shape: readonly number[];

  constructor(shape: number | readonly number[], options: LayerNormOptions = {}) {
    super();
    const known = { eps: "number", bias: "boolean", elementwiseAffine: "boolean", dtype, device } as const;
    checkOptions("LayerNorm", options, known);
    const { eps = 1e-5, bias = true, elementwiseAffine = true, ...layer } = options;
    const extents: readonly number[] = Array.isArray(shape) ? shape : [shape as number];
    const isShape = extents.length > 0;
    check(isShape, "BAD_ARGUMENT", "LayerNorm", () => "the shape must have an axis, got [].", "For example [64].");
    checkExtents("LayerNorm", Object.fromEntries(extents.map((extent, i) => [`extent ${i}`, extent])));
    check(eps >= 0, "BAD_ARGUMENT", "LayerNorm", () => `eps must be >= 0, got ${show(eps)}.`, "Use 1e-5.");
    this.weight = elementwiseAffine ? ones(weightOf(extents, layer)) : null;
    this.bias = elementwiseAffine && bias ? weightOf(extents, layer) : null;
    this.eps = eps;
    this.#shape = [...extents];
    holdParameters(this, elementwiseAffine ? ["weight"] : []);
  }

  forward(x: Tensor): Tensor {
    checkTensor("LayerNorm", x);
    if (this.weight !== null) return layerNorm(x, this.weight, this.bias, this.eps);
    const { dtype, device } = x;
    const isOther = dtype === "f64" || dtype === "f16" || dtype === "bf16";
    return tidy(() => layerNorm(x, onesOf(this.#shape, { dtype: isOther ? dtype : "f32", device }), null, this.eps));
  }

  override describe(): string {
    const shown = `[${this.#shape.join(", ")}], eps=${this.eps}, bias=${this.bias !== null}`;
    return this.weight === null ? `${shown}, elementwiseAffine=false` : shown;
  }
}
