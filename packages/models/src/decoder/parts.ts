/** Layers of decoders: made empty, since weights are loaded or drawn when the model is whole. */
import { type Device, type DType, Generator, gelu, keep, relu, type Shape, silu, type Tensor, zeros } from "@opt/core";
import { zeros as clear, Embedding, Linear, RMSNorm, type RMSNormOptions } from "@opt/nn";
import type { ModelConfig } from "../config/config";

/** Where weights are, and what they consist of. */
export interface WeightOptions {
  readonly device?: Device | string;
  readonly dtype?: DType;
}

/** A parameter of zeros. */
function weightOf(shape: Shape, options: WeightOptions): Tensor {
  return keep(zeros(shape, { ...options, requiresGrad: true }));
}

function withWeight<L extends Linear | Embedding>(layer: L, shape: Shape, options: WeightOptions): L {
  layer.weight.dispose();
  layer.weight = weightOf(shape, options);
  return layer;
}

/** A linear layer that draws nothing. */
export function linearOf(inFeatures: number, outFeatures: number, bias: boolean, options: WeightOptions): Linear {
  const made = new Linear(1, 1, { bias: false, ...options, generator: new Generator(0) });
  const layer = withWeight(made, [outFeatures, inFeatures], options);
  if (bias) layer.bias = weightOf([outFeatures], options);
  return layer;
}

/** A table that draws nothing. */
export function tableOf(count: number, width: number, options: WeightOptions): Embedding {
  return withWeight(new Embedding(1, 1, { ...options, generator: new Generator(0) }), [count, width], options);
}

/** Gemma's norm: x / sqrt(mean(x^2) + eps) times 1 + weight. */
export class UnitOffsetNorm extends RMSNorm {
  readonly #norm: RMSNorm;

  constructor(width: number, options: RMSNormOptions) {
    super(width, options);
    clear(this.weight!);
    this.#norm = new RMSNorm(width, { eps: this.eps, elementwiseAffine: false });
  }

  override forward(x: Tensor): Tensor {
    return this.#norm.forward(x).mul(this.weight!.add(1));
  }
}

const tanhGelu = (x: Tensor) => gelu(x, { approximate: "tanh" });

/** Activations by the names of config.json. */
export const ACTIVATION: Readonly<Record<ModelConfig["activation"], (x: Tensor) => Tensor>> = {
  gelu: (x) => gelu(x),
  gelu_new: tanhGelu,
  gelu_pytorch_tanh: tanhGelu,
  relu,
  silu,
};
