/** A rectifier whose slope is trained. */
import { checkOptions, prelu, type Tensor } from "@opt/core";
import { constant } from "../../initializers/initializers";
import { holdParameters } from "../../module/held";
import { Module } from "../../module/module";
import { checkExtents } from "../extent";
import { LAYER_OPTIONS, type LayerOptions, weightOf } from "../layer-options";

/** How `PReLU` begins. */
export interface PReLUOptions extends Omit<LayerOptions, "generator"> {
  /** The first slope. Default 0.25. */
  readonly init?: number;
}

const { dtype, device } = LAYER_OPTIONS;

/**
 * x where it is positive, elsewhere x times `weight`: one slope, or one for each channel of axis 1. Train it without weight decay.
 *
 * @throws OptError BAD_ARGUMENT; forward: BAD_SHAPE
 * @example
 * const y = new PReLU(3).forward(randn([2, 3, 8, 8]));
 */
export class PReLU extends Module {
  weight: Tensor;

  constructor(numParameters = 1, options: PReLUOptions = {}) {
    super();
    checkOptions("PReLU", options, { init: "number", dtype, device });
    checkExtents("PReLU", { numParameters });
    this.weight = constant(weightOf([numParameters], options), options.init ?? 0.25);
    holdParameters(this, ["weight"]);
  }

  forward(x: Tensor): Tensor {
    return prelu(x, this.weight);
  }

  override describe(): string {
    return `numParameters=${this.weight.size}`;
  }
}
