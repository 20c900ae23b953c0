import { type Convolution3dOptions, conv3d, type Tensor, type Triple } from "@opt/core";
import { Convolution, type ConvolutionLayerOptions } from "./convolution";

export type Conv3dOptions = ConvolutionLayerOptions<Triple>;

/**
 * Cross-correlation of volumes [batch, in, depth, height, width] with weight [out, in / groups, kernelDepth, kernelHeight, kernelWidth],
 * plus bias [out]. Weight and bias begin as U[-k, k], k = 1 / sqrt(in / groups * kernel volume), as PyTorch's. The batch may be left out.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE, BAD_ARGUMENT
 * @example
 * const features = new Conv3d(1, 4, 3, { padding: 1 }).forward(rand([2, 1, 8, 8, 8])); // [2, 4, 8, 8, 8]
 */
export class Conv3d extends Convolution {
  constructor(inChannels: number, outChannels: number, kernelSize: Triple, options: Conv3dOptions = {}) {
    super(3, false, inChannels, outChannels, kernelSize, options);
  }

  protected override slide(x: Tensor): Tensor {
    const { outputPadding: _, ...sliding } = this.sliding;
    return conv3d(x, this.weight, this.bias, sliding as Convolution3dOptions);
  }
}
