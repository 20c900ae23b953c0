import { conv2d, type Tensor, tidy, unfold } from "@opt/core";
import { Convolution, type ConvolutionLayerOptions } from "./convolution";

/** One number for all directions, or [depth, vertical, horizontal]. */
export type Triple = number | readonly [number, number, number];
export type Conv3dOptions = ConvolutionLayerOptions<Triple>;
type Extents3d = readonly [number, number, number];

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

  /** The slices in a window become channels of images. */
  protected override slide(x: Tensor): Tensor {
    const { weight, bias } = this;
    const { groups } = this.sliding;
    const [stride, padding, dilation] = [this.sliding.stride, this.sliding.padding, this.sliding.dilation] as [
      Extents3d,
      Extents3d,
      Extents3d,
    ];
    const [batch, channels, depth, height, width] = x.shape as [number, number, number, number, number];
    const [out, inside, slices, ...kernel] = weight.shape as [number, number, number, number, number];
    return tidy(() => {
      const planes = x.reshape([batch, channels, depth, height * width]);
      const along = { stride: [stride[0], 1], padding: [padding[0], 0], dilation: [dilation[0], 1] } as const;
      const stacks = unfold(planes, [slices, 1], along); // [batch, channels * slices, outDepth * height * width]
      const outDepth = stacks.shape[2]! / (height * width);
      const images = stacks.reshape([batch, channels * slices, outDepth, height, width]).permute([0, 2, 1, 3, 4]);
      const flat = conv2d(
        images.reshape([batch * outDepth, channels * slices, height, width]),
        weight.reshape([out, inside * slices, ...kernel]),
        bias,
        {
          stride: [stride[1], stride[2]],
          padding: [padding[1], padding[2]],
          dilation: [dilation[1], dilation[2]],
          groups,
        },
      );
      const [, , outHeight, outWidth] = flat.shape as [number, number, number, number];
      return flat.reshape([batch, outDepth, out, outHeight, outWidth]).permute([0, 2, 1, 3, 4]);
    });
  }
}
