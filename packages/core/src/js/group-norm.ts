/** Normalisation of the groups of channels of each sample and its gradient. */
import type { LaunchArguments } from "../backend/spec";
import type { ComputeDType } from "../values/dtype";
import { elements } from "./memory";
import { sumOf } from "./sum";

type Groups = LaunchArguments["groupNorm" | "groupNormGrad"];

/** Calls `body` with the number of each group, and `runs(visit)`, which visits its channels: their number, that of the run, and its first place. */
function forEachGroup(
  { outer, channels, inner, groups }: Groups,
  body: (group: number, runs: (visit: (channel: number, run: number, first: number) => void) => void) => void,
): void {
  const size = channels / groups;
  for (let group = 0; group < outer * groups; group++)
    body(group, (visit) => {
      for (let run = group * size; run < (group + 1) * size; run++) visit(run % channels, run, run * inner);
    });
}

export function groupNorm(dtype: ComputeDType, launch: LaunchArguments["groupNorm"]): void {
  const { channels, inner, groups, eps } = launch;
  const x = elements(launch.input, dtype);
  const weight = elements(launch.weight, dtype);
  const bias = elements(launch.bias, dtype);
  const y = elements(launch.output, dtype);
  const means = elements(launch.mean, dtype);
  const variances = elements(launch.variance, dtype);
  const count = (channels / groups) * inner;
  forEachGroup(launch, (group, runs) => {
    /** Of each run by itself, then runs in order. */
    const sum = (term: (place: number) => number) => {
      let total = 0;
      runs((_, __, first) => {
        total += sumOf(inner, (i) => term(first + i));
      });
      return total;
    };
    const mean = sum((i) => x[i]!) / count;
    const variance =
      sum((i) => {
        const centered = x[i]! - mean;
        return centered * centered;
      }) / count;
    runs((channel, _, first) => {
      const scale = weight[channel]! / Math.sqrt(variance + eps);
      for (let i = first; i < first + inner; i++) y[i] = (x[i]! - mean) * scale + bias[channel]!;
    });
    means[group] = mean;
    variances[group] = variance;
  });
}

/** With h = (x - mean) rstd and q = weight g: dx = rstd (q - mean(q) - h mean(q h)), of each channel of each sample dweight = sum(g h), dbias = sum(g). */
export function groupNormGrad(dtype: ComputeDType, launch: LaunchArguments["groupNormGrad"]): void {
  const { channels, inner, groups, eps } = launch;
  const x = elements(launch.input, dtype);
  const weight = elements(launch.weight, dtype);
  const means = elements(launch.mean, dtype);
  const variances = elements(launch.variance, dtype);
  const g = elements(launch.gradient, dtype);
  const dx = elements(launch.inputGradient, dtype);
  const dweight = elements(launch.weightGradient, dtype);
  const dbias = elements(launch.biasGradient, dtype);
  const count = (channels / groups) * inner;
  forEachGroup(launch, (group, runs) => {
    const mean = means[group]!;
    // Of nothing the variance is NaN, and sums are 0.
    const rstd = count === 0 ? 0 : 1 / Math.sqrt(variances[group]! + eps);
    let [total, along] = [0, 0];
    runs((channel, run, first) => {
      const sum = sumOf(inner, (i) => g[first + i]!);
      const product = sumOf(inner, (i) => g[first + i]! * (x[first + i]! - mean));
      total += weight[channel]! * sum;
      along += weight[channel]! * product;
      dweight[run] = product * rstd;
      dbias[run] = sum;
    });
    const shift = (total * rstd) / count;
    const slope = (along * rstd * rstd * rstd) / count;
    runs((channel, _, first) => {
      const scale = weight[channel]! * rstd;
      for (let i = first; i < first + inner; i++) dx[i] = scale * g[i]! - shift - (x[i]! - mean) * slope;
    });
  });
}
