/** Pools along sequences [batch, channels, length], of which the batch may be left out. */
import {
  type AvgPoolOptions,
  adaptiveAvgPool2d,
  avgPool2d,
  checkOptions,
  type MaxPoolOptions,
  maxPool2d,
  type Tensor,
  tidy,
} from "@opt/core";
import { Module } from "../../module/module";
import { batched } from "../batched";
import { checkExtents } from "../extent";

/** As `MaxPoolOptions`, of numbers. */
export interface MaxPool1dOptions {
  readonly stride?: number;
  readonly padding?: number;
  readonly dilation?: number;
  readonly ceilMode?: boolean;
}

/** As `AvgPoolOptions`, of numbers. */
export interface AvgPool1dOptions {
  readonly stride?: number;
  readonly padding?: number;
  readonly countIncludePad?: boolean;
  readonly ceilMode?: boolean;
}

type Along = readonly [number, number];

/** The options of images of one row. */
function ofRows({ stride, padding, dilation, ...rest }: MaxPool1dOptions & AvgPool1dOptions, kernelSize: number) {
  const along = (value: number, none: number): Along => [none, value];
  return {
    ...rest,
    stride: along(stride ?? kernelSize, 1),
    padding: along(padding ?? 0, 0),
    ...(dilation === undefined ? {} : { dilation: along(dilation, 1) }),
  };
}

abstract class Pool1d extends Module {
  readonly kernelSize: number;
  readonly options: MaxPool1dOptions & AvgPool1dOptions;

  constructor(kernelSize: number, options: MaxPool1dOptions & AvgPool1dOptions, known: "dilation" | "countIncludePad") {
    super();
    const name = new.target.name;
    const kind = known === "dilation" ? "number" : "boolean";
    checkOptions(name, options, { stride: "number", padding: "number", ceilMode: "boolean", [known]: kind });
    const { stride = 1, padding = 0, dilation = 1 } = options;
    checkExtents(name, { kernelSize, stride, dilation, "padding + 1": padding + 1 });
    this.kernelSize = kernelSize;
    this.options = { ...options };
  }

  protected abstract pool(rows: Tensor): Tensor;

  forward(x: Tensor): Tensor {
    return batched(this.constructor.name, x, 1, (batch) => tidy(() => this.pool(batch.unsqueeze(2)).squeeze(2)));
  }

  override describe(): string {
    return Object.entries({ kernelSize: this.kernelSize, ...this.options })
      .map(([name, value]) => `${name}=${value}`)
      .join(", ");
  }
}

/**
 * The largest value of each window of sequences. The stride is the kernel size by default.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE, BAD_ARGUMENT
 * @example
 * const shorter = new MaxPool1d(2).forward(rand([1, 3, 8])); // [1, 3, 4]
 */
export class MaxPool1d extends Pool1d {
  constructor(kernelSize: number, options: MaxPool1dOptions = {}) {
    super(kernelSize, options, "dilation");
  }

  protected override pool(rows: Tensor): Tensor {
    return maxPool2d(rows, [1, this.kernelSize], ofRows(this.options, this.kernelSize) as MaxPoolOptions);
  }
}

/**
 * The average of each window of sequences. The stride is the kernel size by default.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE, BAD_ARGUMENT
 * @example
 * const shorter = new AvgPool1d(2).forward(rand([1, 3, 8])); // [1, 3, 4]
 */
export class AvgPool1d extends Pool1d {
  constructor(kernelSize: number, options: AvgPool1dOptions = {}) {
    super(kernelSize, options, "countIncludePad");
  }

  protected override pool(rows: Tensor): Tensor {
    return avgPool2d(rows, [1, this.kernelSize], ofRows(this.options, this.kernelSize) as AvgPoolOptions);
  }
}

/**
 * Averages of `outputSize` parts of sequences.
 *
 * @throws OptError BAD_ARGUMENT for a size below 1; forward: BAD_SHAPE
 * @example
 * const features = new AdaptiveAvgPool1d(1).forward(rand([1, 3, 8])); // [1, 3, 1]
 */
export class AdaptiveAvgPool1d extends Module {
  readonly outputSize: number;

  constructor(outputSize: number) {
    super();
    checkExtents("AdaptiveAvgPool1d", { outputSize });
    this.outputSize = outputSize;
  }

  forward(x: Tensor): Tensor {
    return batched("AdaptiveAvgPool1d", x, 1, (batch) =>
      tidy(() => adaptiveAvgPool2d(batch.unsqueeze(2), [1, this.outputSize]).squeeze(2)),
    );
  }

  override describe(): string {
    return `outputSize=${this.outputSize}`;
  }
}
