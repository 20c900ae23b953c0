/** Normalisation of channels over a batch and its gradient. */
import type { LaunchArguments } from "../backend/spec";
import type { ComputeDType } from "../values/dtype";
import { elements } from "./memory";

/** Visits the places of a channel of [outer, channels, inner]. */
function forEachPlace(
  { outer, channels, inner }: LaunchArguments["batchNorm" | "batchNormGrad"],
  channel: number,
  visit: (place: number) => void,
): void {
  for (let image = 0; image < outer; image++) {
    const first = (image * channels + channel) * inner;
    for (let i = first; i < first + inner; i++) visit(i);
  }
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
    let sum = 0;
    forEachPlace(launch, c, (i) => {
      sum += x[i]!;
    });
    const mean = sum / (outer * inner);
    let squares = 0;
    forEachPlace(launch, c, (i) => {
      squares += (x[i]! - mean) ** 2;
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
    const rstd = 1 / Math.sqrt(variances[c]! + eps);
    let sum = 0;
    let along = 0;
    forEachPlace(launch, c, (i) => {
      sum += g[i]!;
      along += g[i]! * (x[i]! - mean) * rstd;
    });
    forEachPlace(launch, c, (i) => {
      dx[i] = weight[c]! * rstd * (g[i]! - sum / count - ((x[i]! - mean) * rstd * along) / count);
    });
    dweight[c] = along;
    dbias[c] = sum;
  }
}
