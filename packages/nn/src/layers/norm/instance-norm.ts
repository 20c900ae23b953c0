/** Instance normalisation. */
import { check, checkTensor, fma, noGrad, type Tensor, tidy } from "@opt/core";
import { floatOf, inFloats } from "../floats";
import { ChannelNorm, type ChannelNormOptions } from "./channel-norm";
import { normOfNothing } from "./empty";

export interface InstanceNormOptions extends ChannelNormOptions {
  /** The share of the new batch in the running statistics; null leaves them, as PyTorch does. Default 0.1. */
  readonly momentum?: number | null;
  /** Trains a weight and a bias per channel. Default false. */
  readonly affine?: boolean;
  /** Keeps running statistics, which evaluation normalises by; without, it does by each sample's own. Default false. */
  readonly trackRunningStats?: boolean;
}

const AXES = { 1: "length", 2: "height, width", 3: "depth, height, width" } as const;

/** Of each channel of each sample. 16-bit inputs are computed in f32. */
abstract class InstanceNorm extends ChannelNorm {
  protected constructor(features: number, options: InstanceNormOptions) {
    super(features, options, false);
  }

  /** Of an input [batch, features, ...] with so many further axes, or without the batch. */
  protected normalize(x: Tensor, axes: 1 | 2 | 3): Tensor {
    const where = this.constructor.name;
    checkTensor(where, x);
    const { features } = this;
    const batched = x.shape.length === axes + 2;
    const shape = batched ? x.shape : [1, ...x.shape];
    const [batch, channels, ...rest] = shape as [number, number, ...number[]];
    check(
      shape.length === axes + 2 && channels === features,
      "BAD_SHAPE",
      where,
      () => `the input must be [batch, ${features}, ${AXES[axes]}], got [${x.shape}].`,
      "Reshape it, or leave out the batch alone.",
    );
    const length = rest.reduce((a, b) => a * b, 1);
    return tidy(() => {
      const planes = inFloats(x).reshape([batch, channels, length]);
      const isOwn = this.training || this.running_mean === null;
      const result = isOwn ? this.#bySample(planes) : this.byRunning(planes);
      return result.reshape(x.shape).to(floatOf(x.dtype));
    });
  }

  #bySample(planes: Tensor): Tensor {
    const [batch, channels, length] = planes.shape as [number, number, number];
    check(
      length !== 1,
      "BAD_SHAPE",
      this.constructor.name,
      () => `needs more than one value per channel of a sample, got 1.`,
      "Use larger inputs.",
    );
    if (planes.size === 0) return normOfNothing(planes, this.weight, this.bias);
    const { output, mean, variance } = this.byInput(planes.reshape([1, batch * channels, length]), null, null);
    if (this.isTracking) {
      noGrad(() => {
        const average = (values: Tensor) => values.reshape([batch, channels]).mean(0);
        this.follow(average(mean), average(variance).mul(length / (length - 1)), this.momentum ?? 0);
      });
    }
    const normal = output.reshape(planes.shape);
    const { weight, bias } = this;
    return weight && bias ? fma(normal, weight.unsqueeze(1), bias.unsqueeze(1)) : normal;
  }
}

/**
 * Instance normalisation of [batch, features, length], or without the batch: see `InstanceNorm2d`.
 *
 * @throws OptError BAD_ARGUMENT for options out of range; forward: BAD_SHAPE
 * @example
 * const y = new InstanceNorm1d(4).forward(rand([2, 4, 6])); // [2, 4, 6]
 */
export class InstanceNorm1d extends InstanceNorm {
  constructor(features: number, options: InstanceNormOptions = {}) {
    super(features, options);
  }

  forward(x: Tensor): Tensor {
    return this.normalize(x, 1);
  }
}

/**
 * (x - mean) / sqrt(variance + eps) of each channel of each image [batch, features, height, width] (Ulyanov et al. 2016), with `affine`
 * times a weight plus a bias of the channel. With `trackRunningStats` evaluation normalises by the running statistics.
 *
 * @throws OptError BAD_ARGUMENT for options out of range; forward: BAD_SHAPE
 * @example
 * const y = new InstanceNorm2d(4, { affine: true }).forward(rand([2, 4, 6, 6])); // [2, 4, 6, 6]
 */
export class InstanceNorm2d extends InstanceNorm {
  constructor(features: number, options: InstanceNormOptions = {}) {
    super(features, options);
  }

  forward(x: Tensor): Tensor {
    return this.normalize(x, 2);
  }
}

/**
 * Instance normalisation of volumes [batch, features, depth, height, width], or without the batch: see `InstanceNorm2d`.
 *
 * @throws OptError BAD_ARGUMENT for options out of range; forward: BAD_SHAPE
 * @example
 * const y = new InstanceNorm3d(4).forward(rand([2, 4, 3, 6, 6])); // [2, 4, 3, 6, 6]
 */
export class InstanceNorm3d extends InstanceNorm {
  constructor(features: number, options: InstanceNormOptions = {}) {
    super(features, options);
  }

  forward(x: Tensor): Tensor {
    return this.normalize(x, 3);
  }
}
