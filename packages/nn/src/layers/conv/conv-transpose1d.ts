import { convTranspose2d, type Tensor, tidy } from "@opt/core";
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
      stride: [1, stride[0]!],
      padding: [0, padding[0]!],
      dilation: [1, dilation[0]!],
      outputPadding: [0, outputPadding[0]!],
      groups,
    } as const;
    return tidy(() => convTranspose2d(x.unsqueeze(2), this.weight.unsqueeze(2), this.bias, along).squeeze(2));
  }
}
