import { type ConvolutionOptions, checkOptions, conv2d, type Pair, type Tensor } from "@opt/core";
import { uniform } from "../../initializers/initializers";
import { holdParameters } from "../../module/held";
import { Module } from "../../module/module";
import { checkExtents } from "../extent";
import { drawnBy, LAYER_OPTIONS, type LayerOptions, weightOf } from "../layer-options";
import { checkWindow, describeWindow, WINDOW_OPTIONS } from "../window-options";
import { checkGroups } from "./groups";

export interface Conv2dOptions extends LayerOptions, ConvolutionOptions {
  readonly bias?: boolean;
}

/**
 * Cross-correlation of images [batch, in, height, width] with weight [out, in / groups, kernelHeight, kernelWidth], plus bias [out].
 * Weight and bias begin as U[-k, k], k = 1 / sqrt(in / groups * kernelHeight * kernelWidth), as PyTorch's.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE, BAD_ARGUMENT
 * @example
 * const images = rand([2, 1, 28, 28]);
 * const features = new Conv2d(1, 8, 3, { padding: 1 }).forward(images); // [2, 8, 28, 28]
 */
export class Conv2d extends Module {
  weight: Tensor;
  bias: Tensor | null;
  readonly window: ConvolutionOptions;

  constructor(inChannels: number, outChannels: number, kernelSize: Pair, options: Conv2dOptions = {}) {
    super();
    checkOptions("Conv2d", options, { bias: "boolean", groups: "number", ...WINDOW_OPTIONS, ...LAYER_OPTIONS });
    const { bias = true, stride = 1, padding = 0, dilation = 1, groups = 1, ...layer } = options;
    const [height, width] = Array.isArray(kernelSize) ? kernelSize : [kernelSize, kernelSize];
    checkExtents("Conv2d", { inChannels, outChannels, "kernel height": height, "kernel width": width });
    checkWindow("Conv2d", kernelSize, { stride, padding, dilation });
    checkGroups("Conv2d", groups, { inChannels, outChannels });
    const bound = 1 / Math.sqrt((inChannels / groups) * height * width);
    const shape = [outChannels, inChannels / groups, height, width];
    this.weight = uniform(weightOf(shape, layer), -bound, bound, drawnBy(layer));
    this.bias = bias ? uniform(weightOf([outChannels], layer), -bound, bound, drawnBy(layer)) : null;
    this.window = { stride, padding, dilation, groups };
    holdParameters(this, ["weight"]);
  }

  forward(x: Tensor): Tensor {
    return conv2d(x, this.weight, this.bias, this.window);
  }

  override describe(): string {
    const [out, input, height, width] = this.weight.shape;
    const { groups = 1, ...window } = this.window;
    const grouped = groups === 1 ? "" : `, groups=${groups}`;
    return `${input! * groups}, ${out}, kernelSize=${height}x${width}${describeWindow(window)}${grouped}, bias=${this.bias !== null}`;
  }
}
