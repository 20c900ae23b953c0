import { check, checkOptions, checkTensor, conv2d, show, type Tensor, tidy } from "@opt/core";
import { uniform } from "../../initializers/initializers";
import { holdParameters } from "../../module/held";
import { Module } from "../../module/module";
import { checkExtents } from "../extent";
import { drawnBy, LAYER_OPTIONS, type LayerOptions, weightOf } from "../layer-options";
import { checkGroups } from "./groups";

export interface Conv1dOptions extends LayerOptions {
  readonly stride?: number;
  readonly padding?: number;
  readonly dilation?: number;
  /** Channels are cut into so many groups, each of which sees its own alone. Default 1. */
  readonly groups?: number;
  readonly bias?: boolean;
}

const OPTIONS = { stride: "number", padding: "number", dilation: "number", groups: "number", bias: "boolean" } as const;

/**
 * Cross-correlation of sequences [batch, in, length] with weight [out, in / groups, kernel], plus bias [out].
 * Weight and bias begin as U[-k, k], k = 1 / sqrt(in / groups * kernel), as PyTorch's.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE, BAD_ARGUMENT
 * @example
 * const features = new Conv1d(2, 8, 3, { padding: 1 }).forward(rand([4, 2, 16])); // [4, 8, 16]
 */
export class Conv1d extends Module {
  weight: Tensor;
  bias: Tensor | null;
  readonly window: Required<Pick<Conv1dOptions, "stride" | "padding" | "dilation" | "groups">>;

  constructor(inChannels: number, outChannels: number, kernelSize: number, options: Conv1dOptions = {}) {
    super();
    checkOptions("Conv1d", options, { ...OPTIONS, ...LAYER_OPTIONS });
    const { bias = true, stride = 1, padding = 0, dilation = 1, groups = 1, ...layer } = options;
    checkExtents("Conv1d", { inChannels, outChannels, kernelSize, stride, dilation });
    const fits = Number.isInteger(padding) && padding >= 0;
    check(fits, "BAD_ARGUMENT", "Conv1d", () => `padding must be an integer >= 0, got ${show(padding)}.`, "Use 0.");
    checkGroups("Conv1d", groups, { inChannels, outChannels });
    const bound = 1 / Math.sqrt((inChannels / groups) * kernelSize);
    this.weight = uniform(
      weightOf([outChannels, inChannels / groups, kernelSize], layer),
      -bound,
      bound,
      drawnBy(layer),
    );
    this.bias = bias ? uniform(weightOf([outChannels], layer), -bound, bound, drawnBy(layer)) : null;
    this.window = { stride, padding, dilation, groups };
    holdParameters(this, ["weight"]);
  }

  forward(x: Tensor): Tensor {
    checkTensor("Conv1d", x);
    const isSequence = x.shape.length === 3;
    check(isSequence, "BAD_SHAPE", "Conv1d", () => `the input must be [batch, channels, length], got [${x.shape}].`);
    const { stride, padding, dilation, groups } = this.window;
    const along = { stride: [1, stride], padding: [0, padding], dilation: [1, dilation], groups } as const;
    return tidy(() => conv2d(x.unsqueeze(2), this.weight.unsqueeze(2), this.bias, along).squeeze(2));
  }

  override describe(): string {
    const [out, input, kernel] = this.weight.shape;
    const { groups, ...window } = this.window;
    const settings = Object.entries({ ...window, groups }).map(([name, value]) => `${name}=${value}`);
    return `${input! * groups}, ${out}, kernelSize=${kernel}, ${settings.join(", ")}, bias=${this.bias !== null}`;
  }
}
