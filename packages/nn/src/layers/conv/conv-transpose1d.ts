import { convTranspose1d, type Tensor } from "@opt/core";
import { Convolution, type TransposedLayerOptions } from "./convolution";

export type ConvTranspose1dOptions = TransposedLayerOptions<number>;

/**
 * The adjoint of `Conv1d`, which makes sequences longer: [batch, in, length] with weight [in, out / groups, kernel].
 * Length = (size - 1) stride - 2 padding + dilation (kernel - 1) + outputPadding + 1. The batch may be left out.
 * Weight and bias begin as U[-k, k], k = 1 / sqrt(out / groups * kernel), as PyTorch's.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE, BAD_ARGUMENT
 * @example
 * const longer = new ConvTranspose1d(8, 1, 2, { stride: 2 }).forward(rand([1, 8, 7])); // [1, 1, 14]
 */
export class ConvTranspose1d extends Convolution {
  constructor(inChannels: number, outChannels: number, kernelSize: number, options: ConvTranspose1dOptions = {}) {
    super(1, true, inChannels, outChannels, kernelSize, options);
  }

  protected override slide(x: Tensor): Tensor {
    const { stride, padding, dilation, outputPadding, groups } = this.sliding;
    const along = {
      stride: stride[0]!,
      padding: padding[0]!,
      dilation: dilation[0]!,
      outputPadding: outputPadding[0]!,
      groups,
    };
    return convTranspose1d(x, this.weight, this.bias, along);
  }
}
