/** Normalisation of sets of runs by their mean and variance: channels over a batch, or groups of channels of a sample. */
import type { LaunchArguments } from "../backend/spec";
import type { ComputeDType } from "../values/dtype";
import { elements } from "./memory";
import { sumOf } from "./sum";

/** Each set has `size` runs of `inner` places. */
export interface Runs {
  readonly sets: number;
  readonly size: number;
  readonly inner: number;
  /** The first place of a run. */
  place(set: number, run: number): number;
  /** Whose weight and bias it takes. */
  channel(set: number, run: number): number;
}

/** The sum of `term(place)` over a set: each run by itself, then runs in order. */
export function sumOfSet({ size, inner, place }: Runs, set: number, term: (place: number) => number): number {
  let total = 0;
  for (let run = 0; run < size; run++) {
    const first = place(set, run);
    total += sumOf(inner, (i) => term(first + i));
  }
  return total;
}

export function normalize(dtype: ComputeDType, launch: LaunchArguments["batchNorm"], runs: Runs): void {
  const x = elements(launch.input, dtype);
  const weight = elements(launch.weight, dtype);
  const bias = elements(launch.bias, dtype);
  const y = elements(launch.output, dtype);
  const means = elements(launch.mean, dtype);
  const variances = elements(launch.variance, dtype);
  const { sets, size, inner } = runs;
  for (let set = 0; set < sets; set++) {
    const mean = sumOfSet(runs, set, (i) => x[i]!) / (size * inner);
    const squares = sumOfSet(runs, set, (i) => {
      const centered = x[i]! - mean;
      return centered * centered;
    });
    const variance = squares / (size * inner);
    for (let run = 0; run < size; run++) {
      const [first, channel] = [runs.place(set, run), runs.channel(set, run)];
      const scale = weight[channel]! / Math.sqrt(variance + launch.eps);
      for (let i = first; i < first + inner; i++) y[i] = (x[i]! - mean) * scale + bias[channel]!;
    }
    means[set] = mean;
    variances[set] = variance;
  }
}
