/** Kernels that treat each row of a matrix by itself: softmax, cross-entropy and their gradients. */
import type { LaunchArguments, Specs } from "../backend/spec";
import type { ComputeDType, TypedArray } from "../values/dtype";
import { elements } from "./memory";

/** log(sum(exp(x - max))) and max of a row. A NaN makes both NaN. */
function logSumExp(x: TypedArray, start: number, length: number): { max: number; logSum: number } {
  let max = Number.NEGATIVE_INFINITY;
  for (let i = start; i < start + length; i++) max = Math.max(max, x[i]!);
  let sum = 0;
  for (let i = start; i < start + length; i++) sum += Math.exp(x[i]! - max);
  return { max, logSum: Math.log(sum) };
}

export function softmax(
  { log, dtype }: Specs["softmax"],
  { input, output, rows, length }: LaunchArguments["softmax"],
): void {
  const x = elements(input, dtype);
  const y = elements(output, dtype);
  for (let row = 0; row < rows; row++) {
    const start = row * length;
    const { max, logSum } = logSumExp(x, start, length);
    for (let i = start; i < start + length; i++) {
      const shifted = x[i]! - max - logSum;
      y[i] = log ? shifted : Math.exp(shifted);
    }
  }
}

export function softmaxGrad(
  { log, dtype }: Specs["softmaxGrad"],
  { forward, gradient, output, rows, length }: LaunchArguments["softmaxGrad"],
): void {
  const y = elements(forward, dtype);
  const g = elements(gradient, dtype);
  const out = elements(output, dtype);
  for (let row = 0; row < rows; row++) {
    const start = row * length;
    let sum = 0;
    for (let i = start; i < start + length; i++) sum += log ? g[i]! : g[i]! * y[i]!;
    for (let i = start; i < start + length; i++) out[i] = log ? g[i]! - Math.exp(y[i]!) * sum : y[i]! * (g[i]! - sum);
  }
}

export function crossEntropy(dtype: ComputeDType, launch: LaunchArguments["crossEntropy"]): void {
  const { rows, classes, ignoreIndex } = launch;
  const x = elements(launch.logits, dtype);
  const labels = elements(launch.labels, "i32");
  const out = elements(launch.output, dtype);
  for (let row = 0; row < rows; row++) {
    const label = labels[row]!;
    if (label === ignoreIndex) out[row] = 0;
    else if (label < 0 || label >= classes) out[row] = Number.NaN;
    else {
      const { max, logSum } = logSumExp(x, row * classes, classes);
      out[row] = max + logSum - x[row * classes + label]!;
    }
  }
}

export function crossEntropyGrad(dtype: ComputeDType, launch: LaunchArguments["crossEntropyGrad"]): void {
  const { rows, classes, ignoreIndex } = launch;
  const x = elements(launch.logits, dtype);
  const labels = elements(launch.labels, "i32");
  const g = elements(launch.gradient, dtype);
  const out = elements(launch.output, dtype);
  for (let row = 0; row < rows; row++) {
    const start = row * classes;
    const label = labels[row]!;
    if (label === ignoreIndex || label < 0 || label >= classes) {
      out.fill(label === ignoreIndex ? 0 : Number.NaN, start, start + classes);
      continue;
    }
    const { max, logSum } = logSumExp(x, start, classes);
    for (let j = 0; j < classes; j++) {
      out[start + j] = (Math.exp(x[start + j]! - max - logSum) - (j === label ? 1 : 0)) * g[row]!;
    }
  }
}
