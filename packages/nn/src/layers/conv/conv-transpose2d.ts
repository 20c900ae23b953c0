import { type ConvTransposeOptions, convTranspose2d, type Pair, type Tensor } from "@opt/core";
import { Convolution, type TransposedLayerOptions } from "./convolution";

export type ConvTranspose2dOptions = TransposedLayerOptions<Pair>;

/**
 * The adjoint of `Conv2d`, which makes images larger: [batch, in, height, width] with weight [in, out / groups, kernelHeight, kernelWidth].
 * Extent = (size - 1) stride - 2 padding + dilation (kernel - 1) + outputPadding + 1. The batch may be left out.
 * Weight and bias begin as U[-k, k], k = 1 / sqrt(out / groups * kernelHeight * kernelWidth), as PyTorch's.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE, BAD_ARGUMENT
 * @example
 * const larger = new ConvTranspose2d(8, 1, 2, { stride: 2 }).forward(rand([1, 8, 7, 7])); // [1, 1, 14, 14]
 */
export class ConvTranspose2d extends Convolution {
  constructor(inChannels: number, outChannels: number, kernelSize: Pair, options: ConvTranspose2dOptions = {}) {
    super(2, true, inChannels, outChannels, kernelSize, options);
  }

  protected override slide(x: Tensor): Tensor {
    return convTranspose2d(x, this.weight, this.bias, this.sliding as ConvTransposeOptions);
  }
}
