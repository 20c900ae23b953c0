/** Layer normalisation of rows and its gradient. */
import type { LaunchArguments } from "../backend/spec";
import type { ComputeDType } from "../values/dtype";
import { elements } from "./memory";
import { sumColumns } from "./sum";

export function layerNorm(dtype: ComputeDType, launch: LaunchArguments["layerNorm"]): void {
  const { rows, length, eps } = launch;
  const x = elements(launch.input, dtype);
  const weight = elements(launch.weight, dtype);
  const bias = elements(launch.bias, dtype);
  const y = elements(launch.output, dtype);
  const means = elements(launch.mean, dtype);
  const rstds = elements(launch.rstd, dtype);
  for (let row = 0; row < rows; row++) {
    const start = row * length;
    let sum = 0;
    for (let i = 0; i < length; i++) sum += x[start + i]!;
    const mean = sum / length;
    let squares = 0;
    for (let i = 0; i < length; i++) squares += (x[start + i]! - mean) ** 2;
    const rstd = 1 / Math.sqrt(squares / length + eps);
    for (let i = 0; i < length; i++) y[start + i] = (x[start + i]! - mean) * rstd * weight[i]! + bias[i]!;
    means[row] = mean;
    rstds[row] = rstd;
  }
}

/** With h = (x - mean) * rstd and d = g * weight: dx = rstd * (d - mean(d) - h * mean(d * h)), dweight = sum(g h), dbias = sum(g). */
export function layerNormGrad(dtype: ComputeDType, launch: LaunchArguments["layerNormGrad"]): void {
  const { rows, length } = launch;
  const x = elements(launch.input, dtype);
  const weight = elements(launch.weight, dtype);
  const means = elements(launch.mean, dtype);
  const rstds = elements(launch.rstd, dtype);
  const g = elements(launch.gradient, dtype);
  const dx = elements(launch.inputGradient, dtype);
  for (let row = 0; row < rows; row++) {
    const start = row * length;
    const mean = means[row]!;
    const rstd = rstds[row]!;
    let sumD = 0;
    let sumDH = 0;
    for (let i = 0; i < length; i++) {
      const h = (x[start + i]! - mean) * rstd;
      const d = g[start + i]! * weight[i]!;
      sumD += d;
      sumDH += d * h;
    }
    for (let i = 0; i < length; i++) {
      const h = (x[start + i]! - mean) * rstd;
      dx[start + i] = rstd * (g[start + i]! * weight[i]! - sumD / length - (h * sumDH) / length);
    }
  }
  // Terms are in the dtype, their sums in float64.
  const round = dtype === "f32" ? Math.fround : Number;
  const dweight = sumColumns(rows, length, (row, i) => {
    const h = round(round(x[row * length + i]! - means[row]!) * rstds[row]!);
    return round(g[row * length + i]! * h);
  });
  elements(launch.weightGradient, dtype).set(dweight);
  elements(launch.biasGradient, dtype).set(sumColumns(rows, length, (row, i) => g[row * length + i]!));
}
