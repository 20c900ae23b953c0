/** Normalisation of channels over a batch and its gradient. */
import type { LaunchArguments } from "../backend/spec";
import type { ComputeDType } from "../values/dtype";
import { elements } from "./memory";
import { sumOf } from "./sum";

type Channels = LaunchArguments["batchNorm" | "batchNormGrad"];

/** Visits the places of a channel of [outer, channels, inner]. */
function forEachPlace({ outer, channels, inner }: Channels, channel: number, visit: (place: number) => void): void {
  for (let image = 0; image < outer; image++) {
    const first = (image * channels + channel) * inner;
    for (let i = first; i < first + inner; i++) visit(i);
  }
}

/** The sum of `term(place)` over a channel: each image by itself, then images in order. */
function sumPlaces({ outer, channels, inner }: Channels, channel: number, term: (place: number) => number): number {
  let total = 0;
  for (let image = 0; image < outer; image++) {
    const first = (image * channels + channel) * inner;
    total += sumOf(inner, (i) => term(first + i));
  }
  return total;
}

export function batchNorm(dtype: ComputeDType, launch: LaunchArguments["batchNorm"]): void {
  const { outer, channels, inner, eps } = launch;
  const x = elements(launch.input, dtype);
  const weight = elements(launch.weight, dtype);
  const bias = elements(launch.bias, dtype);
  const y = elements(launch.output, dtype);
  const means = elements(launch.mean, dtype);
  const variances = elements(launch.variance, dtype);
  for (let c = 0; c < channels; c++) {
    const mean = sumPlaces(launch, c, (i) => x[i]!) / (outer * inner);
    const squares = sumPlaces(launch, c, (i) => {
      const centered = x[i]! - mean;
      return centered * centered;
    });
    const variance = squares / (outer * inner);
    const scale = weight[c]! / Math.sqrt(variance + eps);
    forEachPlace(launch, c, (i) => {
      y[i] = (x[i]! - mean) * scale + bias[c]!;
    });
    means[c] = mean;
    variances[c] = variance;
  }
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
  for (let c = 0; c < channels; c++) {
    const mean = means[c]!;
    // Of nothing the variance is NaN, and sums are 0.
    const rstd = count === 0 ? 0 : 1 / Math.sqrt(variances[c]! + eps);
    const sum = sumPlaces(launch, c, (i) => g[i]!);
    const along = sumPlaces(launch, c, (i) => g[i]! * (x[i]! - mean));
    const scale = weight[c]! * rstd;
    const slope = (along * rstd * rstd) / count;
    const shift = sum / count;
    forEachPlace(launch, c, (i) => {
      dx[i] = scale * (g[i]! - shift - (x[i]! - mean) * slope);
    });
    dweight[c] = along * rstd;
    dbias[c] = sum;
  }
}
