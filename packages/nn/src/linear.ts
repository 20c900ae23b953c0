import { OptError, type Tensor } from "@opt/core";
import { checkExtents } from "./extent";
import { uniform } from "./initializers";
import { type LayerOptions, weightOf } from "./layer-options";
import { Module } from "./module";

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
  readonly weight: Tensor;
  readonly bias: Tensor | null;

  constructor(inFeatures: number, outFeatures: number, { bias = true, ...options }: LinearOptions = {}) {
    super();
    checkExtents("Linear", { inFeatures, outFeatures });
    const bound = 1 / Math.sqrt(inFeatures);
    this.weight = uniform(weightOf([outFeatures, inFeatures], options), -bound, bound, options);
    this.bias = bias ? uniform(weightOf([outFeatures], options), -bound, bound, options) : null;
  }

  forward(x: Tensor): Tensor {
    const features = this.weight.shape[1]!;
    if (x.shape.at(-1) !== features) {
      throw new OptError(
        "BAD_SHAPE",
        "Linear",
        `the last axis of the input must be ${features}, got shape [${x.shape}].`,
        "Reshape the input, or change inFeatures.",
      );
    }
    // One matrix product over all leading axes: faster than a batch of small ones, and vectors need no special case.
    const rows = x.reshape([x.size / features, features]);
    const product = rows.matmul(this.weight, { transposeB: true });
    const sum = this.bias === null ? product : product.add(this.bias);
    return sum.reshape([...x.shape.slice(0, -1), this.weight.shape[0]!]);
  }
}
