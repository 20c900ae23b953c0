import { checkOptions, maxPool2d, type Pair, type Tensor, type WindowOptions } from "@opt/core";
import { Module } from "../../module/module";
import { checkWindow, describeWindow, WINDOW_OPTIONS } from "../window-options";

/**
 * The largest value of each window of images [batch, channels, height, width]. The stride is the kernel size by default.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE, BAD_ARGUMENT
 */
export class MaxPool2d extends Module {
  readonly kernelSize: Pair;
  readonly window: WindowOptions;

  constructor(kernelSize: Pair, window: WindowOptions = {}) {
    super();
    checkOptions("MaxPool2d", window, WINDOW_OPTIONS);
    checkWindow("MaxPool2d", kernelSize, window);
    this.kernelSize = kernelSize;
    this.window = { ...window };
  }

  forward(x: Tensor): Tensor {
    return maxPool2d(x, this.kernelSize, this.window);
  }

  override describe(): string {
    return `kernelSize=${[this.kernelSize].flat().join("x")}${describeWindow(this.window)}`;
  }
}
