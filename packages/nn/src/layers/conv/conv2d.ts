import { type ConvolutionOptions, conv2d, type Pair, type Tensor } from "@opt/core";
import { Convolution, type ConvolutionLayerOptions } from "./convolution";

export type Conv2dOptions = ConvolutionLayerOptions<Pair>;

/**
 * Cross-correlation of images [batch, in, height, width] with weight [out, in / groups, kernelHeight, kernelWidth], plus bias [out].
 * Weight and bias begin as U[-k, k], k = 1 / sqrt(in / groups * kernelHeight * kernelWidth), as PyTorch's. The batch may be left out.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE, BAD_ARGUMENT
 * @example
 * const images = rand([2, 1, 28, 28]);
 * const features = new Conv2d(1, 8, 3, { padding: 1 }).forward(images); // [2, 8, 28, 28]
 */
export class Conv2d extends Convolution {
  constructor(inChannels: number, outChannels: number, kernelSize: Pair, options: Conv2dOptions = {}) {
    super(2, false, inChannels, outChannels, kernelSize, options);
  }

  protected override slide(x: Tensor): Tensor {
    const { outputPadding: _, ...window } = this.sliding;
    return conv2d(x, this.weight, this.bias, window as ConvolutionOptions);
  }
}
