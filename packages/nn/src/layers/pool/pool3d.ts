/** Pools of volumes [batch, channels, depth, height, width], of which the batch may be left out. */
import {
  type AvgPool3dOptions,
  avgPool3d,
  checkOptions,
  type MaxPool3dOptions,
  maxPool3d,
  type Tensor,
  type Triple,
} from "@opt/core";
import { Module } from "../../module/module";
import { batched } from "../batched";
import { AVERAGE_OPTIONS, checkAverage, checkWindow, describeWindow, WINDOW_OPTIONS } from "../window-options";

/**
 * The largest value of each window of volumes. The stride is the kernel size by default.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE, BAD_ARGUMENT
 * @example
 * const smaller = new MaxPool3d(2).forward(rand([1, 3, 4, 8, 8])); // [1, 3, 2, 4, 4]
 */
export class MaxPool3d extends Module {
  readonly kernelSize: Triple;
  readonly window: MaxPool3dOptions;

  constructor(kernelSize: Triple, window: MaxPool3dOptions = {}) {
    super();
    checkOptions("MaxPool3d", window, { ...WINDOW_OPTIONS, ceilMode: "boolean" });
    const { ceilMode: _, ...sliding } = window;
    checkWindow("MaxPool3d", kernelSize, sliding, 3);
    this.kernelSize = structuredClone(kernelSize);
    this.window = structuredClone(window);
  }

  forward(x: Tensor): Tensor {
    return batched("MaxPool3d", x, 3, (volumes) => maxPool3d(volumes, this.kernelSize, this.window));
  }

  override describe(): string {
    return `kernelSize=${[this.kernelSize].flat().join("x")}${describeWindow(this.window)}`;
  }
}

/**
 * The average of each window of volumes. The stride is the kernel size by default.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE, BAD_ARGUMENT
 * @example
 * const smaller = new AvgPool3d(2).forward(rand([1, 3, 4, 8, 8])); // [1, 3, 2, 4, 4]
 */
export class AvgPool3d extends Module {
  readonly kernelSize: Triple;
  readonly window: AvgPool3dOptions;

  constructor(kernelSize: Triple, options: AvgPool3dOptions = {}) {
    super();
    checkOptions("AvgPool3d", options, AVERAGE_OPTIONS);
    checkAverage("AvgPool3d", kernelSize, options, 3);
    this.kernelSize = structuredClone(kernelSize);
    this.window = structuredClone(options);
  }

  forward(x: Tensor): Tensor {
    return batched("AvgPool3d", x, 3, (volumes) => avgPool3d(volumes, this.kernelSize, this.window));
  }

  override describe(): string {
    const { countIncludePad, ...window } = this.window;
    return `kernelSize=${[this.kernelSize].flat().join("x")}${describeWindow({ ...window, countIncludePad })}`;
  }
}
