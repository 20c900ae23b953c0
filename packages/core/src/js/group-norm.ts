/** Normalisation of the groups of channels of each sample and its gradient. */
import type { LaunchArguments } from "../backend/spec";
import type { ComputeDType } from "../values/dtype";
import { elements } from "./memory";
import { normalize, type Runs } from "./normalize";
import { sumOf } from "./sum";

/** The groups of [outer, channels, inner]: a run of each channel, one after the other. */
function groupsOf({ outer, channels, inner, groups }: LaunchArguments["groupNorm" | "groupNormGrad"]): Runs {
  const size = channels / groups;
  return {
    ...{ sets: outer * groups, size, inner },
    place: (group, run) => (group * size + run) * inner,
    channel: (group, run) => (group * size + run) % channels,
  };
}

export function groupNorm(dtype: ComputeDType, launch: LaunchArguments["groupNorm"]): void {
  normalize(dtype, launch, groupsOf(launch));
}

/** With h = (x - mean) rstd and q = weight g: dx = rstd (q - mean(q) - h mean(q h)), of each channel of each sample dweight = sum(g h), dbias = sum(g). */
export function groupNormGrad(dtype: ComputeDType, launch: LaunchArguments["groupNormGrad"]): void {
  const x = elements(launch.input, dtype);
  const weight = elements(launch.weight, dtype);
  const means = elements(launch.mean, dtype);
  const variances = elements(launch.variance, dtype);
  const g = elements(launch.gradient, dtype);
  const dx = elements(launch.inputGradient, dtype);
  const dweight = elements(launch.weightGradient, dtype);
  const dbias = elements(launch.biasGradient, dtype);
  const runs = groupsOf(launch);
  const { sets, size, inner } = runs;
  const count = size * inner;
  for (let group = 0; group < sets; group++) {
    const mean = means[group]!;
    // Of nothing the variance is NaN, and sums are 0.
    const rstd = count === 0 ? 0 : 1 / Math.sqrt(variances[group]! + launch.eps);
    let [total, along] = [0, 0];
    for (let run = 0; run < size; run++) {
      const first = runs.place(group, run);
      const own = weight[runs.channel(group, run)]!;
      const sum = sumOf(inner, (i) => g[first + i]!);
      const product = sumOf(inner, (i) => g[first + i]! * (x[first + i]! - mean));
      total += own * sum;
      along += own * product;
      dweight[group * size + run] = product * rstd;
      dbias[group * size + run] = sum;
    }
    const shift = (total * rstd) / count;
    const slope = (along * rstd * rstd * rstd) / count;
    for (let run = 0; run < size; run++) {
      const first = runs.place(group, run);
      const scale = weight[runs.channel(group, run)]! * rstd;
      for (let i = first; i < first + inner; i++) dx[i] = scale * g[i]! - shift - (x[i]! - mean) * slope;
    }
  }
}
