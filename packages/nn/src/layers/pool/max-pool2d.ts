import { checkOptions, type MaxPoolOptions, maxPool2d, type Pair, type Tensor } from "@opt/core";
import { Module } from "../../module/module";
import { batched } from "../batched";
import { checkWindow, describeWindow, WINDOW_OPTIONS } from "../window-options";

/**
 * The largest value of each window of images [batch, channels, height, width]. The stride is the kernel size by default.
 * The batch may be left out.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE, BAD_ARGUMENT
 */
export class MaxPool2d extends Module {
  readonly kernelSize: Pair;
  readonly window: MaxPoolOptions;

  constructor(kernelSize: Pair, window: MaxPoolOptions = {}) {
    super();
    checkOptions("MaxPool2d", window, { ...WINDOW_OPTIONS, ceilMode: "boolean" });
    const { ceilMode: _, ...sliding } = window;
    checkWindow("MaxPool2d", kernelSize, sliding);
    this.kernelSize = structuredClone(kernelSize);
    this.window = structuredClone(window);
  }

  forward(x: Tensor): Tensor {
    return batched("MaxPool2d", x, 2, (images) => maxPool2d(images, this.kernelSize, this.window));
  }

  override describe(): string {
    return `kernelSize=${[this.kernelSize].flat().join("x")}${describeWindow(this.window)}`;
  }
}
