import { checkOptions, conv2d, type Pair, type Tensor, type WindowOptions } from "@opt/core";
import { uniform } from "../initializers/initializers";
import { holdParameters } from "../module/held";
import { Module } from "../module/module";
import { checkExtents } from "./extent";
import { drawnBy, LAYER_OPTIONS, type LayerOptions, weightOf } from "./layer-options";
import { checkWindow, describeWindow, WINDOW_OPTIONS } from "./window-options";

export interface Conv2dOptions extends LayerOptions, WindowOptions {
  readonly bias?: boolean;
}

/**
 * Cross-correlation of images [batch, in, height, width] with weight [out, in, kernelHeight, kernelWidth], plus bias [out].
 * Weight and bias begin as U[-k, k], k = 1 / sqrt(in * kernelHeight * kernelWidth), as PyTorch's.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE, BAD_ARGUMENT
 * @example
 * const images = rand([2, 1, 28, 28]);
 * const features = new Conv2d(1, 8, 3, { padding: 1 }).forward(images); // [2, 8, 28, 28]
 */
export class Conv2d extends Module {
  readonly weight: Tensor;
  readonly bias: Tensor | null;
  readonly window: WindowOptions;

  constructor(inChannels: number, outChannels: number, kernelSize: Pair, options: Conv2dOptions = {}) {
    super();
    checkOptions("Conv2d", options, { bias: "boolean", ...WINDOW_OPTIONS, ...LAYER_OPTIONS });
    const { bias = true, stride = 1, padding = 0, dilation = 1, ...layer } = options;
    const [height, width] = Array.isArray(kernelSize) ? kernelSize : [kernelSize, kernelSize];
    checkExtents("Conv2d", { inChannels, outChannels, "kernel height": height, "kernel width": width });
    checkWindow("Conv2d", kernelSize, { stride, padding, dilation });
    const bound = 1 / Math.sqrt(inChannels * height * width);
    this.weight = uniform(weightOf([outChannels, inChannels, height, width], layer), -bound, bound, drawnBy(layer));
    this.bias = bias ? uniform(weightOf([outChannels], layer), -bound, bound, drawnBy(layer)) : null;
    this.window = { stride, padding, dilation };
    holdParameters(this, ["weight"]);
  }

  forward(x: Tensor): Tensor {
    return conv2d(x, this.weight, this.bias, this.window);
  }

  override describe(): string {
    const [out, input, height, width] = this.weight.shape;
    return `${input}, ${out}, kernelSize=${height}x${width}${describeWindow(this.window)}, bias=${this.bias !== null}`;
  }
}
