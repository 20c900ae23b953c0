/** Normalisation by channel: what BatchNorm and InstanceNorm share. */
import {
  check,
  checkOptions,
  div,
  fma,
  fusedBatchNorm,
  isRecomputing,
  needing,
  noGrad,
  onesLike,
  show,
  type Tensor,
  tidy,
  zerosLike,
} from "@opt/core";
import { ones } from "../../initializers/initializers";
import { holdParameters } from "../../module/held";
import { Module } from "../../module/module";
import { checkExtents } from "../extent";
import { bufferOf, LAYER_OPTIONS, type LayerOptions, weightOf } from "../layer-options";

export interface ChannelNormOptions extends Omit<LayerOptions, "generator"> {
  /** Default 1e-5. */
  readonly eps?: number;
  /** The share of the new batch in the running statistics. Default 0.1. */
  readonly momentum?: number | null;
  /** Trains a weight and a bias per channel. */
  readonly affine?: boolean;
  /** Keeps running statistics, which evaluation normalises by; without, it does by the input's own. */
  readonly trackRunningStats?: boolean;
}

const { dtype, device } = LAYER_OPTIONS;
const KNOWN = {
  eps: "number",
  momentum: "any",
  affine: "boolean",
  trackRunningStats: "boolean",
  dtype,
  device,
} as const;

/** Weight, bias and running statistics of channels, and the arithmetic on planes [outer, channels, inner]. */
export abstract class ChannelNorm extends Module {
  weight: Tensor | null;
  bias: Tensor | null;
  /** Buffers under PyTorch's names, as checkpoints have them. */
  readonly running_mean: Tensor | null;
  readonly running_var: Tensor | null;
  /** i32, of shape []. */
  readonly num_batches_tracked: Tensor | null;
  readonly eps: number;
  /** The share of the new batch in the running statistics; null: their plain average. */
  momentum: number | null;
  protected readonly features: number;

  protected constructor(features: number, options: ChannelNormOptions, byDefault: boolean) {
    super();
    const where = new.target.name;
    checkOptions(where, options, KNOWN);
    checkExtents(where, { features });
    const { eps = 1e-5, momentum = 0.1, affine = byDefault, trackRunningStats = byDefault, ...place } = options;
    check(eps >= 0, "BAD_ARGUMENT", where, () => `eps must be >= 0, got ${show(eps)}.`, "Use 1e-5.");
    check(
      momentum === null || (typeof momentum === "number" && momentum >= 0 && momentum <= 1),
      "BAD_ARGUMENT",
      where,
      () => `momentum must be null or in [0, 1], got ${show(momentum)}.`,
      "Use 0.1.",
    );
    this.weight = affine ? ones(weightOf([features], place)) : null;
    this.bias = affine ? weightOf([features], place) : null;
    this.running_mean = trackRunningStats ? bufferOf([features], 0, place) : null;
    this.running_var = trackRunningStats ? bufferOf([features], 1, place) : null;
    this.num_batches_tracked = trackRunningStats ? bufferOf([], 0, { ...place, dtype: "i32" }) : null;
    this.eps = eps;
    this.momentum = momentum;
    this.features = features;
    holdParameters(this);
  }

  /** Starts the running statistics over: mean 0, variance 1, no batch counted. */
  resetRunningStats(): void {
    tidy(() => {
      this.running_mean?.set(zerosLike(this.running_mean));
      this.running_var?.set(onesLike(this.running_var));
      this.num_batches_tracked?.set(0);
    });
  }

  /** By the mean and the biased variance of each channel of these planes. */
  protected byInput(
    planes: Tensor,
    weight: Tensor | null,
    bias: Tensor | null,
  ): { readonly output: Tensor; readonly mean: Tensor; readonly variance: Tensor } {
    const fused = fusedBatchNorm(planes, weight, bias, this.eps);
    if (fused !== null) return fused;
    const mean = planes.mean(2).mean(0);
    const centered = planes.sub(mean.unsqueeze(1));
    const variance = centered.mul(centered).mean(2).mean(0);
    const result = this.#scaled(centered, variance, weight, bias);
    const output = needing("batchNorm", result, weight === null ? [planes] : [planes, weight]);
    return { output, mean, variance };
  }

  /** By a mean and a biased variance of each channel that came from elsewhere. */
  protected byStatistics(planes: Tensor, mean: Tensor, variance: Tensor): Tensor {
    return this.#scaled(planes.sub(mean.unsqueeze(1)), variance, this.weight, this.bias);
  }

  #scaled(centered: Tensor, variance: Tensor, weight: Tensor | null, bias: Tensor | null): Tensor {
    const scale = this.#scale(variance, weight).unsqueeze(1);
    return bias === null ? centered.mul(scale) : fma(centered, scale, bias.unsqueeze(1));
  }

  protected byRunning(planes: Tensor): Tensor {
    const scale = this.#scale(this.running_var!, this.weight);
    const shift = this.running_mean!.mul(scale).neg();
    return fma(planes, scale.unsqueeze(1), (this.bias === null ? shift : shift.add(this.bias)).unsqueeze(1));
  }

  #scale(variance: Tensor, weight: Tensor | null): Tensor {
    return div<Tensor>(weight ?? 1, variance.add(this.eps).sqrt());
  }

  /** Whether this forward moves the running statistics: not when it is computed again for backward. */
  protected get isTracking(): boolean {
    return this.training && this.running_mean !== null && !isRecomputing();
  }

  /** The running statistics move by `share` towards these. */
  protected follow(mean: Tensor, variance: Tensor, share: number | Tensor): void {
    noGrad(() => {
      for (const [running, value] of [
        [this.running_mean!, mean],
        [this.running_var!, variance],
      ] as const) {
        const rest = typeof share === "number" ? running.mul(1 - share) : running.sub(running.mul(share));
        running.set(rest.add(value.mul(share)));
      }
    });
  }

  override describe(): string {
    const { eps, momentum, weight, running_mean: running } = this;
    return `${this.features}, eps=${eps}, momentum=${momentum}, affine=${weight !== null}, trackRunningStats=${running !== null}`;
  }
}
