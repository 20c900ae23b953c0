/** Pools that are asked for a number of results, of which the batch may be left out. */
import {
  adaptiveAvgPool1d,
  adaptiveAvgPool2d,
  adaptiveAvgPool3d,
  adaptiveMaxPool1d,
  adaptiveMaxPool2d,
  adaptiveMaxPool3d,
  check,
  type OutputSize2d,
  type OutputSize3d,
  show,
  type Tensor,
} from "@opt/core";
import { Module } from "../../module/module";
import { batched } from "../batched";
import { checkExtents } from "../extent";

abstract class AdaptivePool<Size extends number | readonly (number | null)[]> extends Module {
  readonly outputSize: Size;
  readonly #axes: 1 | 2 | 3;

  constructor(axes: 1 | 2 | 3, outputSize: Size) {
    super();
    const where = new.target.name;
    if (axes === 1) checkExtents(where, { outputSize: outputSize as number });
    const list: readonly unknown[] = Array.isArray(outputSize) ? outputSize : Array<unknown>(axes).fill(outputSize);
    check(
      list.length === axes && list.every((n) => n === null || (Number.isInteger(n) && (n as number) >= 1)),
      "BAD_ARGUMENT",
      where,
      () =>
        `outputSize must be an integer >= 1 or ${axes === 2 ? "a pair" : "three"} of them or null, got ${show(outputSize)}.`,
      axes === 2 ? "For example 1 or [4, null]." : "For example 1 or [4, null, null].",
    );
    this.outputSize = structuredClone(outputSize);
    this.#axes = axes;
  }

  protected abstract pool(x: Tensor): Tensor;

  forward(x: Tensor): Tensor {
    return batched(this.constructor.name, x, this.#axes, (batch) => this.pool(batch));
  }

  override describe(): string {
    return `outputSize=${[this.outputSize].flat().map(String).join("x")}`;
  }
}

/**
 * Averages of `outputSize` parts of sequences.
 *
 * @throws OptError BAD_ARGUMENT for a size below 1; forward: BAD_SHAPE
 * @example
 * const features = new AdaptiveAvgPool1d(1).forward(rand([1, 3, 8])); // [1, 3, 1]
 */
export class AdaptiveAvgPool1d extends AdaptivePool<number> {
  constructor(outputSize: number) {
    super(1, outputSize);
  }

  protected override pool(x: Tensor): Tensor {
    return adaptiveAvgPool1d(x, this.outputSize);
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
export class AdaptiveAvgPool2d extends AdaptivePool<OutputSize2d> {
  constructor(outputSize: OutputSize2d) {
    super(2, outputSize);
  }

  protected override pool(x: Tensor): Tensor {
    return adaptiveAvgPool2d(x, this.outputSize);
  }
}

/**
 * Averages of parts of volumes, as many along each axis as `outputSize` says; null keeps an extent.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE
 * @example
 * const features = new AdaptiveAvgPool3d(1).forward(rand([1, 3, 4, 8, 8])); // [1, 3, 1, 1, 1]
 */
export class AdaptiveAvgPool3d extends AdaptivePool<OutputSize3d> {
  constructor(outputSize: OutputSize3d) {
    super(3, outputSize);
  }

  protected override pool(x: Tensor): Tensor {
    return adaptiveAvgPool3d(x, this.outputSize);
  }
}

/**
 * The largest values of `outputSize` parts of sequences.
 *
 * @throws OptError BAD_ARGUMENT for a size below 1; forward: BAD_SHAPE
 * @example
 * const features = new AdaptiveMaxPool1d(1).forward(rand([1, 3, 8])); // [1, 3, 1]
 */
export class AdaptiveMaxPool1d extends AdaptivePool<number> {
  constructor(outputSize: number) {
    super(1, outputSize);
  }

  protected override pool(x: Tensor): Tensor {
    return adaptiveMaxPool1d(x, this.outputSize);
  }
}

/**
 * The largest values of parts of images, as many along each axis as `outputSize` says; null keeps an extent.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE
 * @example
 * const features = new AdaptiveMaxPool2d([2, null]).forward(rand([1, 3, 8, 8])); // [1, 3, 2, 8]
 */
export class AdaptiveMaxPool2d extends AdaptivePool<OutputSize2d> {
  constructor(outputSize: OutputSize2d) {
    super(2, outputSize);
  }

  protected override pool(x: Tensor): Tensor {
    return adaptiveMaxPool2d(x, this.outputSize);
  }
}

/**
 * The largest values of parts of volumes, as many along each axis as `outputSize` says; null keeps an extent.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE
 * @example
 * const features = new AdaptiveMaxPool3d(1).forward(rand([1, 3, 4, 8, 8])); // [1, 3, 1, 1, 1]
 */
export class AdaptiveMaxPool3d extends AdaptivePool<OutputSize3d> {
  constructor(outputSize: OutputSize3d) {
    super(3, outputSize);
  }

  protected override pool(x: Tensor): Tensor {
    return adaptiveMaxPool3d(x, this.outputSize);
  }
}
