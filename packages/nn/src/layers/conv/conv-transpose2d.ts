import { type ConvTransposeOptions, checkOptions, convTranspose2d, type Pair, type Tensor } from "@opt/core";
import { uniform } from "../../initializers/initializers";
import { holdParameters } from "../../module/held";
import { Module } from "../../module/module";
import { checkExtents } from "../extent";
import { drawnBy, LAYER_OPTIONS, type LayerOptions, weightOf } from "../layer-options";
import { checkWindow, describeWindow, WINDOW_OPTIONS } from "../window-options";
import { checkGroups } from "./groups";

export interface ConvTranspose2dOptions extends LayerOptions, ConvTransposeOptions {
  readonly bias?: boolean;
}

const OPTIONS = { bias: "boolean", groups: "number", outputPadding: ["number", "array"] } as const;

/**
 * The adjoint of `Conv2d`, which makes images larger: [batch, in, height, width] with weight [in, out / groups, kernelHeight, kernelWidth].
 * Extent = (size - 1) stride - 2 padding + dilation (kernel - 1) + outputPadding + 1.
 * Weight and bias begin as U[-k, k], k = 1 / sqrt(out / groups * kernelHeight * kernelWidth), as PyTorch's.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE, BAD_ARGUMENT
 * @example
 * const larger = new ConvTranspose2d(8, 1, 2, { stride: 2 }).forward(rand([1, 8, 7, 7])); // [1, 1, 14, 14]
 */
export class ConvTranspose2d extends Module {
  weight: Tensor;
  bias: Tensor | null;
  readonly window: ConvTransposeOptions;

  constructor(inChannels: number, outChannels: number, kernelSize: Pair, options: ConvTranspose2dOptions = {}) {
    super();
    checkOptions("ConvTranspose2d", options, { ...OPTIONS, ...WINDOW_OPTIONS, ...LAYER_OPTIONS });
    const { bias = true, stride = 1, padding = 0, dilation = 1, outputPadding = 0, groups = 1, ...layer } = options;
    const [height, width] = Array.isArray(kernelSize) ? kernelSize : [kernelSize, kernelSize];
    checkExtents("ConvTranspose2d", { inChannels, outChannels, "kernel height": height, "kernel width": width });
    checkWindow("ConvTranspose2d", kernelSize, { stride, padding, dilation, outputPadding });
    checkGroups("ConvTranspose2d", groups, { inChannels, outChannels });
    const bound = 1 / Math.sqrt((outChannels / groups) * height * width);
    const shape = [inChannels, outChannels / groups, height, width];
    this.weight = uniform(weightOf(shape, layer), -bound, bound, drawnBy(layer));
    this.bias = bias ? uniform(weightOf([outChannels], layer), -bound, bound, drawnBy(layer)) : null;
    this.window = { stride, padding, dilation, outputPadding, groups };
    holdParameters(this, ["weight"]);
  }

  forward(x: Tensor): Tensor {
    return convTranspose2d(x, this.weight, this.bias, this.window);
  }

  override describe(): string {
    const [input, out, height, width] = this.weight.shape;
    const { groups = 1, ...window } = this.window;
    return `${input}, ${out! * groups}, kernelSize=${height}x${width}${describeWindow(window)}, groups=${groups}, bias=${this.bias !== null}`;
  }
}
