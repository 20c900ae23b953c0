import type { Device } from "../device/device";
import { keep, tidy } from "../device/scope";
import { checkOptions } from "../errors/options";
import { cast } from "../ops";
import { copyFrom } from "../ops/cast";
import { fill, fillInPlace, launchMap } from "../ops/map";
import type { Parameters } from "../optimizer/parameters";
import { Expression } from "../rule/expression";
import { trace } from "../rule/program";
import { add, div, sub } from "../rule/symbols";
import { noGrad } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";
import { WeightAverage, type WeightAverageOptions } from "./weight-average";

const WHERE = "StochasticWeightAverage";

/** average + (param - average) / count, in PyTorch's order. */
const towards = () => {
  const [average, param, count] = [0, 1, 2].map((slot) => new Expression("buffer", [], slot)) as [
    Expression,
    Expression,
    Expression,
  ];
  const expression = add(average, div(sub(param, average), count));
  return trace(["average", "param", "count"], [], [{ slot: 0, expression }]);
};
const TOWARDS = /* @__PURE__ */ towards();

/**
 * Equal-weight averages of parameters (Izmailov et al. 2018, SWA): average += (parameter - average) / (n + 1) at update n, the first of which copies.
 * The bits are those of PyTorch's `AveragedModel` on the CPU; averages of 16-bit parameters are kept in float32.
 * Recompute batch norm's statistics for them with `updateBatchNorm` of `@opt/nn`; `SWALR` is their schedule.
 *
 * @throws OptError BAD_ARGUMENT for other parameters or options
 * @see torch.optim.swa_utils.AveragedModel
 * @example
 * const w = parameter([1, 2, 3]);
 * const swa = new StochasticWeightAverage([w]);
 * swa.update(); // after each of the last epochs
 * const loss = swa.averaged(() => w.mul(w).sum().dataSync()[0]);
 */
export class StochasticWeightAverage extends WeightAverage {
  /** The count of the next update, i32, where the averages are: so that compiled updates count, too. */
  readonly #counts: ReadonlyMap<Device, Tensor>;

  constructor(params: Parameters, options: WeightAverageOptions = {}) {
    checkOptions(WHERE, options, { useBuffers: "boolean" });
    super(WHERE, params, options.useBuffers ?? false);
    const devices = new Set(this.averages.map(({ device }) => device));
    this.#counts = new Map([...devices].map((device) => [device, keep(fill([], 1, "i32", device))]));
  }

  override update(): void {
    super.update();
    for (const count of this.#counts.values()) noGrad(() => tidy(() => copyFrom(count, count.add(1))));
  }

  protected move(average: Tensor, param: Tensor): void {
    const { dtype } = average;
    const count = this.#counts.get(average.device)!;
    if (dtype === "f32" || dtype === "f64")
      launchMap(TOWARDS, dtype, [average, cast(param, dtype), cast(count, dtype)], [], average.shape, average);
    else copyFrom(average, cast(average, "f32").add(cast(param.sub(average), "f32").div(cast(count, "f32"))));
  }

  override loadStateDict(saved: Readonly<Record<string, unknown>>): void {
    super.loadStateDict(saved);
    for (const count of this.#counts.values()) fillInPlace(count, (this.stateDict().n_averaged as number) + 1);
  }

  override dispose(): void {
    super.dispose();
    for (const count of this.#counts.values()) count.dispose();
  }
}
