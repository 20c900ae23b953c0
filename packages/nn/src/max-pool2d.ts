import { maxPool2d, type Pair, type Tensor, type WindowOptions } from "@opt/core";
import { Module } from "./module";

/**
 * The largest value of each window of images [batch, channels, height, width]. The stride is the kernel size by default.
 *
 * @throws forward: OptError BAD_SHAPE, BAD_ARGUMENT
 */
export class MaxPool2d extends Module {
  constructor(
    readonly kernelSize: Pair,
    readonly window: WindowOptions = {},
  ) {
    super();
  }

  forward(x: Tensor): Tensor {
    return maxPool2d(x, this.kernelSize, this.window);
  }
}
