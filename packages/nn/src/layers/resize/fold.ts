/** Windows of images as columns, and back. */
import {
  check,
  checkOptions,
  checkTensor,
  fold,
  type Pair,
  type Tensor,
  tidy,
  unfold,
  type WindowOptions,
} from "@opt/core";
import { Module } from "../../module/module";
import { batched } from "../batched";
import { checkWindow, describeWindow, WINDOW_OPTIONS } from "../window-options";

/**
 * The windows of images [batch, channels, height, width] as columns [batch, channels * kernelHeight * kernelWidth, windows].
 * The batch may be left out.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE
 * @example
 * const patches = new Unfold(4, { stride: 4 }).forward(rand([1, 3, 8, 8])); // [1, 48, 4]
 */
export class Unfold extends Module {
  readonly kernelSize: Pair;
  readonly window: WindowOptions;

  constructor(kernelSize: Pair, options: WindowOptions = {}) {
    super();
    checkOptions("Unfold", options, WINDOW_OPTIONS);
    checkWindow("Unfold", kernelSize, options);
    this.kernelSize = structuredClone(kernelSize);
    this.window = structuredClone(options);
  }

  forward(x: Tensor): Tensor {
    return batched("Unfold", x, 2, (images) => unfold(images, this.kernelSize, this.window));
  }

  override describe(): string {
    return `kernelSize=${[this.kernelSize].flat().join("x")}${describeWindow(this.window)}`;
  }
}

/**
 * Columns [batch, channels * kernelHeight * kernelWidth, windows] added at their places in images [batch, channels, ...outputSize]: the
 * adjoint of `Unfold`. The batch may be left out.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE
 * @example
 * const images = new Fold(8, 4, { stride: 4 }).forward(rand([1, 48, 4])); // [1, 3, 8, 8]
 */
export class Fold extends Module {
  readonly outputSize: Pair;
  readonly kernelSize: Pair;
  readonly window: WindowOptions;

  constructor(outputSize: Pair, kernelSize: Pair, options: WindowOptions = {}) {
    super();
    checkOptions("Fold", options, WINDOW_OPTIONS);
    checkWindow("Fold", kernelSize, options);
    checkWindow("Fold", outputSize, {}, 2, "outputSize");
    this.outputSize = structuredClone(outputSize);
    this.kernelSize = structuredClone(kernelSize);
    this.window = structuredClone(options);
  }

  forward(x: Tensor): Tensor {
    checkTensor("Fold", x);
    const rank = x.shape.length;
    const fits = rank === 2 || rank === 3;
    check(
      fits,
      "BAD_SHAPE",
      "Fold",
      () => `the input must be [batch, channels * kernel, windows] or lack the batch, got [${x.shape}].`,
      "Reshape it.",
    );
    const folded = (columns: Tensor) => fold(columns, this.outputSize, this.kernelSize, this.window);
    return rank === 3 ? folded(x) : tidy(() => folded(x.unsqueeze(0)).squeeze(0));
  }

  override describe(): string {
    const joined = (size: Pair) => [size].flat().join("x");
    return `outputSize=${joined(this.outputSize)}, kernelSize=${joined(this.kernelSize)}${describeWindow(this.window)}`;
  }
}
