import { type AvgPoolOptions, avgPool2d, checkOptions, type Pair, type Tensor } from "@opt/core";
import { Module } from "../../module/module";
import { batched } from "../batched";
import { AVERAGE_OPTIONS, checkAverage, describeWindow } from "../window-options";

/**
 * The average of each window of images [batch, channels, height, width]. The stride is the kernel size by default.
 * The batch may be left out.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE, BAD_ARGUMENT
 * @example
 * const smaller = new AvgPool2d(2).forward(rand([1, 3, 8, 8])); // [1, 3, 4, 4]
 */
export class AvgPool2d extends Module {
  readonly kernelSize: Pair;
  readonly window: AvgPoolOptions;

  constructor(kernelSize: Pair, options: AvgPoolOptions = {}) {
    super();
    checkOptions("AvgPool2d", options, AVERAGE_OPTIONS);
    checkAverage("AvgPool2d", kernelSize, options);
    this.kernelSize = structuredClone(kernelSize);
    this.window = structuredClone(options);
  }

  forward(x: Tensor): Tensor {
    return batched("AvgPool2d", x, 2, (images) => avgPool2d(images, this.kernelSize, this.window));
  }

  override describe(): string {
    const { countIncludePad, ...window } = this.window;
    return `kernelSize=${[this.kernelSize].flat().join("x")}${describeWindow({ ...window, countIncludePad })}`;
  }
}
