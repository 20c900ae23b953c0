import { conv1d, type Tensor } from "@opt/core";
import { Convolution, type ConvolutionLayerOptions } from "./convolution";

export type Conv1dOptions = ConvolutionLayerOptions<number>;

/**
 * Cross-correlation of sequences [batch, in, length] with weight [out, in / groups, kernel], plus bias [out].
 * Weight and bias begin as U[-k, k], k = 1 / sqrt(in / groups * kernel), as PyTorch's. The batch may be left out.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE, BAD_ARGUMENT
 * @example
 * const features = new Conv1d(2, 8, 3, { padding: "same" }).forward(rand([4, 2, 16])); // [4, 8, 16]
 */
export class Conv1d extends Convolution {
  constructor(inChannels: number, outChannels: number, kernelSize: number, options: Conv1dOptions = {}) {
    super(1, false, inChannels, outChannels, kernelSize, options);
  }

  protected override slide(x: Tensor): Tensor {
    const { stride, padding, dilation, groups } = this.sliding;
    const along = { stride: stride[0]!, padding: padding[0]!, dilation: dilation[0]!, groups };
    return conv1d(x, this.weight, this.bias, along);
  }
}
