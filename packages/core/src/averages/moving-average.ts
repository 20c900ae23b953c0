import { check } from "../errors/errors";
import { checkOptions } from "../errors/options";
import { cast } from "../ops";
import { copyFrom } from "../ops/cast";
import { launchMap } from "../ops/map";
import type { Parameters } from "../optimizer/parameters";
import { Expression } from "../rule/expression";
import { trace } from "../rule/program";
import { fma, sub } from "../rule/symbols";
import type { Tensor } from "../tensor/tensor";
import { WeightAverage, type WeightAverageOptions } from "./weight-average";

const WHERE = "ExponentialMovingAverage";

/** Interpolates from the nearer end, as PyTorch's lerp does. */
const lerp = (isNearAverage: boolean) => {
  const [average, param] = [new Expression("buffer", [], 0), new Expression("buffer", [], 1)];
  const [weight, way] = [new Expression("scalar", [], 0), sub(param, average)];
  const expression = isNearAverage ? fma(weight, way, average) : fma(sub(weight, 1), way, param);
  return trace(["average", "param"], ["weight"], [{ slot: 0, expression }]);
};
const FROM_AVERAGE = /* @__PURE__ */ lerp(true);
const FROM_PARAM = /* @__PURE__ */ lerp(false);

export interface MovingAverageOptions extends WeightAverageOptions {
  /** The weight of the old average at each update, 0 to 1. Default 0.999. */
  readonly decay?: number;
}

/**
 * Averages of parameters: average += (1 - decay) (parameter - average) at each `update`; the first one copies.
 * The bits are those of torch.optim.swa_utils' `get_ema_multi_avg_fn`; averages of 16-bit parameters are kept in float32.
 * A module's buffers come along where all its tensors are given (`model.namedTensors()`); see `useBuffers`.
 *
 * @throws OptError BAD_ARGUMENT for other parameters or options
 * @example
 * const w = parameter([1, 2, 3]);
 * const ema = new ExponentialMovingAverage([w], { decay: 0.99 });
 * ema.update(); // after each optimizer.step()
 * const loss = ema.averaged(() => w.mul(w).sum().dataSync()[0]);
 */
export class ExponentialMovingAverage extends WeightAverage {
  readonly decay: number;

  constructor(params: Parameters, options: MovingAverageOptions = {}) {
    checkOptions(WHERE, options, { decay: "number", useBuffers: "boolean" });
    const { decay = 0.999, useBuffers = false } = options;
    check(
      decay >= 0 && decay <= 1,
      "BAD_ARGUMENT",
      WHERE,
      () => `decay must be from 0 to 1, got ${decay}.`,
      "For example 0.999.",
    );
    super(WHERE, params, useBuffers);
    this.decay = decay;
  }

  protected move(average: Tensor, param: Tensor): void {
    const { dtype } = average;
    const weight = 1 - this.decay;
    if (dtype === "f32" || dtype === "f64") {
      const program = weight < 0.5 ? FROM_AVERAGE : FROM_PARAM;
      launchMap(program, dtype, [average, cast(param, dtype)], [weight], average.shape, average);
    } else {
      // PyTorch's lerp takes no integers: they are computed in float32 and cut.
      const [old, added] = [cast(average, "f32").mul(this.decay), cast(param, "f32").mul(weight)];
      copyFrom(average, old.add(added));
    }
  }
}
