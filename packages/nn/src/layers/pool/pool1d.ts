/** Pools along sequences [batch, channels, length], of which the batch may be left out. */
import {
  type AvgPool1dOptions,
  avgPool1d,
  checkOptions,
  type MaxPool1dOptions,
  maxPool1d,
  type Tensor,
} from "@opt/core";
import { Module } from "../../module/module";
import { batched } from "../batched";
import { checkExtents } from "../extent";

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

  protected abstract pool(sequences: Tensor): Tensor;

  forward(x: Tensor): Tensor {
    return batched(this.constructor.name, x, 1, (batch) => this.pool(batch));
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

  protected override pool(sequences: Tensor): Tensor {
    return maxPool1d(sequences, this.kernelSize, this.options);
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

  protected override pool(sequences: Tensor): Tensor {
    return avgPool1d(sequences, this.kernelSize, this.options);
  }
}
