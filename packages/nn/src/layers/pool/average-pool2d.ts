import {
  type AvgPoolOptions,
  adaptiveAvgPool2d,
  avgPool2d,
  check,
  checkOptions,
  type Pair,
  show,
  type Tensor,
} from "@opt/core";
import { Module } from "../../module/module";
import { batched } from "../batched";
import { checkWindow, describeWindow } from "../window-options";

const OPTIONS = {
  stride: ["number", "array"],
  padding: ["number", "array"],
  countIncludePad: "boolean",
  ceilMode: "boolean",
} as const;

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
    checkOptions("AvgPool2d", options, OPTIONS);
    const { countIncludePad: _included, ceilMode: _ceil, ...window } = options;
    checkWindow("AvgPool2d", kernelSize, window);
    this.kernelSize = kernelSize;
    this.window = { ...options };
  }

  forward(x: Tensor): Tensor {
    return batched("AvgPool2d", x, 2, (images) => avgPool2d(images, this.kernelSize, this.window));
  }

  override describe(): string {
    const { countIncludePad = true, ...window } = this.window;
    return `kernelSize=${[this.kernelSize].flat().join("x")}${describeWindow(window)}${countIncludePad ? "" : ", countIncludePad=false"}`;
  }
}

/**
 * Averages of parts of images, as many along each axis as `outputSize` says; null keeps an extent.
 * The batch may be left out.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE
 * @example
 * const features = new AdaptiveAvgPool2d(1).forward(rand([1, 3, 8, 8])); // [1, 3, 1, 1]
 */
export class AdaptiveAvgPool2d extends Module {
  readonly outputSize: number | readonly [number | null, number | null];

  constructor(outputSize: number | readonly [number | null, number | null]) {
    super();
    const both: readonly unknown[] = Array.isArray(outputSize) ? outputSize : [outputSize, outputSize];
    check(
      both.length === 2 && both.every((n) => n === null || (Number.isInteger(n) && (n as number) >= 1)),
      "BAD_ARGUMENT",
      "AdaptiveAvgPool2d",
      () => `outputSize must be an integer >= 1 or a pair of them or null, got ${show(outputSize)}.`,
      "For example 1 or [4, null].",
    );
    this.outputSize = outputSize;
  }

  forward(x: Tensor): Tensor {
    return batched("AdaptiveAvgPool2d", x, 2, (images) => adaptiveAvgPool2d(images, this.outputSize));
  }

  override describe(): string {
    return `outputSize=${[this.outputSize].flat().map(String).join("x")}`;
  }
}
