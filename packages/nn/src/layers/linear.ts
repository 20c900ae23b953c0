import { check, checkOptions, checkTensor, lowered, type Tensor, tidy } from "@opt/core";
import { uniform } from "../initializers/initializers";
import { holdParameters } from "../module/held";
import { Module } from "../module/module";
import { checkExtents } from "./extent";
import { drawnBy, LAYER_OPTIONS, type LayerOptions, weightOf } from "./layer-options";

export interface LinearOptions extends LayerOptions {
  readonly bias?: boolean;
}

/**
 * y = x W^T + b. x [..., in], weight [out, in], bias [out], y [..., out].
 * Weight and bias begin as U[-k, k], k = 1 / sqrt(in), as PyTorch's.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE
 * @example
 * const logits = new Linear(784, 10, { generator: new Generator(1) }).forward(rand([2, 784])); // [2, 10]
 */
export class Linear extends Module {
  weight: Tensor;
  bias: Tensor | null;

  constructor(inFeatures: number, outFeatures: number, options: LinearOptions = {}) {
    super();
    checkOptions("Linear", options, { bias: "boolean", ...LAYER_OPTIONS });
    checkExtents("Linear", { inFeatures, outFeatures });
    const { bias = true, ...layer } = options;
    const bound = 1 / Math.sqrt(inFeatures);
    this.weight = uniform(weightOf([outFeatures, inFeatures], layer), -bound, bound, drawnBy(options));
    this.bias = bias ? uniform(weightOf([outFeatures], layer), -bound, bound, drawnBy(options)) : null;
    holdParameters(this, ["weight"]);
  }

  forward(x: Tensor): Tensor {
    checkTensor("Linear", x);
    const [outFeatures, inFeatures] = this.weight.shape as [number, number];
    check(
      x.shape.at(-1) === inFeatures,
      "BAD_SHAPE",
      "Linear",
      () => `the last axis of the input must be ${inFeatures}, got shape [${x.shape}].`,
      "Reshape the input, or change inFeatures.",
    );
    return tidy(() => {
      // One matrix product over all leading axes: faster than a batch of small ones, and vectors need no special case.
      const rows = x.reshape([x.size / inFeatures, inFeatures]);
      const product = rows.matmul(this.weight, { transposeB: true });
      const sum = this.bias === null ? product : product.add(lowered(this.bias));
      return sum.reshape([...x.shape.slice(0, -1), outFeatures]);
    });
  }

  override describe(): string {
    const [outFeatures, inFeatures] = this.weight.shape;
    return `inFeatures=${inFeatures}, outFeatures=${outFeatures}, bias=${this.bias !== null}`;
  }
}
