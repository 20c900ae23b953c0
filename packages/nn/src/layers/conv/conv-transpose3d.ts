import { type ConvTranspose3dCall, convTranspose3d, type Tensor, type Triple } from "@opt/core";
import { Convolution, type TransposedLayerOptions } from "./convolution";

export type ConvTranspose3dOptions = TransposedLayerOptions<Triple>;

/**
 * The adjoint of `Conv3d`, which makes volumes larger: [batch, in, depth, height, width] with weight
 * [in, out / groups, kernelDepth, kernelHeight, kernelWidth].
 * Extent = (size - 1) stride - 2 padding + dilation (kernel - 1) + outputPadding + 1. The batch may be left out.
 * Weight and bias begin as U[-k, k], k = 1 / sqrt(out / groups * kernel volume), as PyTorch's.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE, BAD_ARGUMENT
 * @example
 * const larger = new ConvTranspose3d(8, 1, 2, { stride: 2 }).forward(rand([1, 8, 3, 4, 4])); // [1, 1, 6, 8, 8]
 */
export class ConvTranspose3d extends Convolution {
  constructor(inChannels: number, outChannels: number, kernelSize: Triple, options: ConvTranspose3dOptions = {}) {
    super(3, true, inChannels, outChannels, kernelSize, options);
  }

  protected override slide(x: Tensor): Tensor {
    return convTranspose3d(x, this.weight, this.bias, this.sliding as ConvTranspose3dCall);
  }
}
