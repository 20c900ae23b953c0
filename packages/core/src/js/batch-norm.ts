/** Normalisation of channels over a batch and its gradient. */
import type { ChannelSizes, LaunchArguments } from "../backend/spec";
import type { ComputeDType } from "../values/dtype";
import { elements } from "./memory";
import { normalize, type Runs, sumOfSet } from "./normalize";

/** The channels of [outer, channels, inner]: a run of each image. */
const channelsOf = ({ outer, channels, inner }: ChannelSizes): Runs => ({
  ...{ sets: channels, size: outer, inner },
  place: (channel, image) => (image * channels + channel) * inner,
  channel: (channel) => channel,
});

export function batchNorm(dtype: ComputeDType, launch: LaunchArguments["batchNorm"]): void {
  normalize(dtype, launch, channelsOf(launch));
}

/** With h = (x - mean) rstd: dx = weight rstd (g - mean(g) - h mean(g h)), dweight = sum(g h), dbias = sum(g). */
export function batchNormGrad(dtype: ComputeDType, launch: LaunchArguments["batchNormGrad"]): void {
  const { outer, channels, inner, eps } = launch;
  const x = elements(launch.input, dtype);
  const weight = elements(launch.weight, dtype);
  const means = elements(launch.mean, dtype);
  const variances = elements(launch.variance, dtype);
  const g = elements(launch.gradient, dtype);
  const dx = elements(launch.inputGradient, dtype);
  const dweight = elements(launch.weightGradient, dtype);
  const dbias = elements(launch.biasGradient, dtype);
  const count = outer * inner;
  const runs = channelsOf(launch);
  for (let c = 0; c < channels; c++) {
    const mean = means[c]!;
    // Of nothing the variance is NaN, and sums are 0.
    const rstd = count === 0 ? 0 : 1 / Math.sqrt(variances[c]! + eps);
    const sum = sumOfSet(runs, c, (i) => g[i]!);
    const along = sumOfSet(runs, c, (i) => g[i]! * (x[i]! - mean));
    const scale = weight[c]! * rstd;
    const slope = (along * rstd * rstd) / count;
    const shift = sum / count;
    for (let image = 0; image < outer; image++) {
      const first = runs.place(c, image);
      for (let i = first; i < first + inner; i++) dx[i] = scale * (g[i]! - shift - (x[i]! - mean) * slope);
    }
    dweight[c] = along * rstd;
    dbias[c] = sum;
  }
}
