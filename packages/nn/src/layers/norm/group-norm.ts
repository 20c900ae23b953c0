import {
  check,
  checkOptions,
  checkTensor,
  fma,
  fusedGroupNorm,
  layerNorm,
  ones as onesOf,
  show,
  type Tensor,
  tidy,
} from "@opt/core";
import { ones } from "../../initializers/initializers";
import { holdParameters } from "../../module/held";
import { Module } from "../../module/module";
import { checkGroups } from "../conv/groups";
import { checkExtents } from "../extent";
import { LAYER_OPTIONS, type LayerOptions, weightOf } from "../layer-options";
import { normOfNothing } from "./empty";

export interface GroupNormOptions extends Omit<LayerOptions, "generator"> {
  /** Default 1e-5. */
  readonly eps?: number;
  /** Trains a weight and a bias per channel. Default true. */
  readonly affine?: boolean;
}

const { dtype, device } = LAYER_OPTIONS;

/**
 * (x - mean) / sqrt(variance + eps) * weight + bias of [batch, channels, ...], mean and variance being those of each group of channels of
 * each sample (Wu & He 2018).
 *
 * @throws OptError BAD_ARGUMENT for groups that do not divide the channels; forward: BAD_SHAPE
 * @example
 * const normal = new GroupNorm(2, 4).forward(rand([3, 4, 8, 8])); // [3, 4, 8, 8]
 */
export class GroupNorm extends Module {
  weight: Tensor | null;
  bias: Tensor | null;
  readonly eps: number;
  readonly #groups: number;
  readonly #channels: number;

  constructor(groups: number, channels: number, options: GroupNormOptions = {}) {
    super();
    checkOptions("GroupNorm", options, { eps: "number", affine: "boolean", dtype, device });
    checkExtents("GroupNorm", { groups, channels });
    checkGroups("GroupNorm", groups, { channels });
    const { eps = 1e-5, affine = true, ...place } = options;
    check(eps >= 0, "BAD_ARGUMENT", "GroupNorm", () => `eps must be >= 0, got ${show(eps)}.`, "Use 1e-5.");
    this.weight = affine ? ones(weightOf([channels], place)) : null;
    this.bias = affine ? weightOf([channels], place) : null;
    this.eps = eps;
    this.#groups = groups;
    this.#channels = channels;
    holdParameters(this);
  }

  forward(x: Tensor): Tensor {
    checkTensor("GroupNorm", x);
    const [batch, channels, ...rest] = x.shape;
    check(
      channels === this.#channels,
      "BAD_SHAPE",
      "GroupNorm",
      () => `the input must be [batch, ${this.#channels}, ...], got [${x.shape}].`,
      "Change the input, or channels.",
    );
    return tidy(() => {
      const isHalf = x.dtype === "f16" || x.dtype === "bf16";
      const wide = isHalf ? x.to("f32") : x;
      const { weight, bias } = this;
      const places = rest.reduce((a, b) => a * b, 1);
      if (places === 0) {
        const nothing = normOfNothing(wide.reshape([batch!, channels!, places]), weight, bias);
        return nothing.reshape(x.shape).to(x.dtype);
      }
      const [groups, eps] = [this.#groups, this.eps];
      const fused = fusedGroupNorm(wide.reshape([batch!, channels!, places]), weight, bias, groups, eps);
      if (fused !== null) return fused.reshape(x.shape).to(x.dtype);
      const length = (places * channels!) / groups;
      const unit = onesOf([length], { dtype: wide.dtype === "f64" ? "f64" : "f32", device: x.device });
      const normal = layerNorm(wide.reshape([batch! * groups, length]), unit, null, eps);
      const planes = normal.reshape([batch!, channels!, places]);
      // Of each sample first: a gradient is then a sum along planes and one of samples, and nothing is permuted.
      const [scale, shift] = [weight, bias].map((each) => each?.unsqueeze(1).expand([batch!, channels!, 1]));
      const result = scale && shift ? fma(planes, scale, shift) : planes;
      return result.reshape(x.shape).to(isHalf ? x.dtype : result.dtype);
    });
  }

  override describe(): string {
    return `${this.#groups}, ${this.#channels}, eps=${this.eps}, affine=${this.weight !== null}`;
  }
}
