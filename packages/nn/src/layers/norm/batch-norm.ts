/** Batch normalisation. */
import { check, checkTensor, div, noGrad, type Tensor, tidy } from "@opt/core";
import { isModule, type Module } from "../../module/module";
import { floatOf, inFloats } from "../floats";
import { ChannelNorm, type ChannelNormOptions } from "./channel-norm";
import { normOfNothing } from "./empty";

export interface BatchNormOptions extends ChannelNormOptions {
  /** The share of the new batch in the running statistics; null: their plain average over all batches. Default 0.1. */
  readonly momentum?: number | null;
  /** Trains a weight and a bias per channel. Default true. */
  readonly affine?: boolean;
  /** Keeps running statistics, which evaluation normalises by; without, it does by its own batch. Default true. */
  readonly trackRunningStats?: boolean;
}

/** Mean, biased variance and number of values of each channel, from planes [batch, channels, length]. */
export type WiderStatistics = (planes: Tensor) => {
  readonly mean: Tensor;
  readonly variance: Tensor;
  readonly count: Tensor;
};

/** By which batch norms are known, of whichever copy of this package. */
const mark: unique symbol = Symbol.for("@opt/nn.batchNorm");

/** True for batch norms of any rank. */
export const isBatchNorm = (module: Module): module is BatchNorm => isModule(module) && mark in module;

/**
 * (x - mean) / sqrt(variance + eps) * weight + bias per channel, axis 1 (Ioffe & Szegedy 2015). In training mean and (biased) variance are the
 * batch's, and the running ones follow, of which the variance is the unbiased one; in evaluation they are the running ones.
 * 16-bit inputs are computed in f32.
 */
export abstract class BatchNorm extends ChannelNorm {
  /** In training gives the statistics of a larger batch than this process's: see `SyncBatchNorm` of `@opt/parallel`. */
  widerStatistics: WiderStatistics | null = null;

  /** @internal */
  get [mark](): true {
    return true;
  }

  protected constructor(features: number, options: BatchNormOptions) {
    super(features, options, true);
  }

  /** Of an input that has the axes it must have. */
  protected normalize(x: Tensor): Tensor {
    const where = this.constructor.name;
    const features = this.features;
    const [batch, channels] = x.shape as [number, number];
    const count = x.size / channels;
    check(
      channels === features,
      "BAD_SHAPE",
      where,
      () => `axis 1 of the input must be ${features}, got shape [${x.shape}].`,
      "Change the input, or features.",
    );
    return tidy(() => {
      const length = x.shape.slice(2).reduce((a, b) => a * b, 1);
      const planes = inFloats(x).reshape([batch, channels, length]);
      const result =
        this.training || this.running_mean === null ? this.#byBatch(planes, count) : this.byRunning(planes);
      return result.reshape(x.shape).to(floatOf(x.dtype));
    });
  }

  #byBatch(planes: Tensor, count: number): Tensor {
    if (this.training && this.widerStatistics !== null) return this.#byWider(planes, this.widerStatistics);
    check(
      count !== 1,
      "BAD_SHAPE",
      this.constructor.name,
      () =>
        `${this.training ? "training needs" : "a batch's own statistics need"} more than one value per channel, got 1.`,
      this.training
        ? "Use larger batches, drop the last one, or call eval()."
        : "Use larger batches, or trackRunningStats.",
    );
    if (count === 0) {
      if (this.isTracking) noGrad(() => this.#countBatch());
      return normOfNothing(planes, this.weight, this.bias);
    }
    const { output, mean, variance } = this.byInput(planes, this.weight, this.bias);
    if (this.isTracking) {
      noGrad(() => this.follow(mean, variance.mul(count / (count - 1)), this.#share(this.running_mean!.dtype)));
    }
    return output;
  }

  #byWider(planes: Tensor, statisticsOf: WiderStatistics): Tensor {
    const { mean, variance, count } = statisticsOf(planes);
    if (this.isTracking) {
      noGrad(() => this.follow(mean, variance.mul(count).div(count.sub(1)), this.#share(this.running_mean!.dtype)));
    }
    return this.byStatistics(planes, mean, variance);
  }

  #countBatch(): Tensor {
    const batches = this.num_batches_tracked!;
    batches.set(batches.add(1));
    return batches;
  }

  /** Counts a batch: of how many it is one is its share of a plain average. */
  #share(dtype: Tensor["dtype"]): number | Tensor {
    const batches = this.#countBatch();
    return this.momentum ?? div<Tensor>(1, batches.to(dtype === "f64" ? "f64" : "f32"));
  }
}

/**
 * Batch normalisation of [batch, features] or [batch, features, length]: see `BatchNorm2d`.
 *
 * @throws OptError BAD_ARGUMENT for options out of range; forward: BAD_SHAPE
 * @example
 * const model = new Sequential(new Linear(8, 16), new BatchNorm1d(16), new ReLU(), new Linear(16, 2));
 */
export class BatchNorm1d extends BatchNorm {
  constructor(features: number, options: BatchNormOptions = {}) {
    super(features, options);
  }

  forward(x: Tensor): Tensor {
    checkTensor("BatchNorm1d", x);
    const fits = x.shape.length === 2 || x.shape.length === 3;
    check(
      fits,
      "BAD_SHAPE",
      "BatchNorm1d",
      () => `the input must be [batch, features] or [batch, features, length], got [${x.shape}].`,
      "Reshape it.",
    );
    return this.normalize(x);
  }
}

/**
 * (x - mean) / sqrt(variance + eps) * weight + bias per channel of images [batch, features, height, width] (Ioffe & Szegedy 2015).
 * In training mean and variance are the batch's, and the running ones follow; in evaluation they are the running ones.
 *
 * @throws OptError BAD_ARGUMENT for options out of range; forward: BAD_SHAPE
 * @example
 * const images = rand([4, 1, 8, 8]);
 * const model = new Sequential(new Conv2d(1, 4, 3), new BatchNorm2d(4), new ReLU());
 * const features = model.forward(images); // [4, 4, 6, 6]
 */
export class BatchNorm2d extends BatchNorm {
  constructor(features: number, options: BatchNormOptions = {}) {
    super(features, options);
  }

  forward(x: Tensor): Tensor {
    checkTensor("BatchNorm2d", x);
    const fits = x.shape.length === 4;
    check(
      fits,
      "BAD_SHAPE",
      "BatchNorm2d",
      () => `the input must be [batch, features, height, width], got [${x.shape}].`,
      "Reshape it.",
    );
    return this.normalize(x);
  }
}

/**
 * Batch normalisation of volumes [batch, features, depth, height, width]: see `BatchNorm2d`.
 *
 * @throws OptError BAD_ARGUMENT for options out of range; forward: BAD_SHAPE
 * @example
 * const y = new BatchNorm3d(4).forward(rand([2, 4, 3, 6, 6])); // [2, 4, 3, 6, 6]
 */
export class BatchNorm3d extends BatchNorm {
  constructor(features: number, options: BatchNormOptions = {}) {
    super(features, options);
  }

  forward(x: Tensor): Tensor {
    checkTensor("BatchNorm3d", x);
    const fits = x.shape.length === 5;
    check(
      fits,
      "BAD_SHAPE",
      "BatchNorm3d",
      () => `the input must be [batch, features, depth, height, width], got [${x.shape}].`,
      "Reshape it.",
    );
    return this.normalize(x);
  }
}
