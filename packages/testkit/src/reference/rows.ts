/** Row-wise kernels in float64, by their definitions: softmax, layer normalisation, cross-entropy. */

function rowOf(x: ArrayLike<number>, row: number, length: number): number[] {
  const values = new Array<number>(length);
  for (let i = 0; i < length; i++) values[i] = x[row * length + i]!;
  return values;
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

/** log of the sum of exponentials, shifted by the maximum. NaN where a value is NaN or the maximum infinite. */
function logSumExp(values: readonly number[]): number {
  const maximum = values.reduce((a, b) => (a > b || Number.isNaN(a) ? a : b), Number.NEGATIVE_INFINITY);
  return maximum + Math.log(sum(values.map((value) => Math.exp(value - maximum))));
}

export function softmax(x: ArrayLike<number>, rows: number, length: number, log: boolean): Float64Array {
  const result = new Float64Array(rows * length);
  for (let row = 0; row < rows; row++) {
    const values = rowOf(x, row, length);
    const shift = logSumExp(values);
    values.forEach((value, i) => {
      result[row * length + i] = log ? value - shift : Math.exp(value - shift);
    });
  }
  return result;
}

/** From the forward output y and the gradient g: y (g - sum(g y)), or g - exp(y) sum(g) for the logarithm. */
export function softmaxGrad(
  forward: ArrayLike<number>,
  gradient: ArrayLike<number>,
  rows: number,
  length: number,
  log: boolean,
): Float64Array {
  const result = new Float64Array(rows * length);
  for (let row = 0; row < rows; row++) {
    const y = rowOf(forward, row, length);
    const g = rowOf(gradient, row, length);
    const total = sum(log ? g : g.map((value, i) => value * y[i]!));
    y.forEach((value, i) => {
      result[row * length + i] = log ? g[i]! - Math.exp(value) * total : value * (g[i]! - total);
    });
  }
  return result;
}

export function layerNorm(
  x: ArrayLike<number>,
  weight: ArrayLike<number>,
  bias: ArrayLike<number>,
  rows: number,
  length: number,
  eps: number,
) {
  const output = new Float64Array(rows * length);
  const mean = new Float64Array(rows);
  const rstd = new Float64Array(rows);
  for (let row = 0; row < rows; row++) {
    const values = rowOf(x, row, length);
    mean[row] = sum(values) / length;
    rstd[row] = 1 / Math.sqrt(sum(values.map((value) => (value - mean[row]!) ** 2)) / length + eps);
    values.forEach((value, i) => {
      output[row * length + i] = (value - mean[row]!) * rstd[row]! * weight[i]! + bias[i]!;
    });
  }
  return { output, mean, rstd };
}

/** With h = (x - mean) rstd and q = weight g: dx = rstd (q - mean(q) - h mean(q h)), dweight = sum of g h, dbias = sum of g over rows. */
export function layerNormGrad(
  x: ArrayLike<number>,
  weight: ArrayLike<number>,
  mean: ArrayLike<number>,
  rstd: ArrayLike<number>,
  gradient: ArrayLike<number>,
  rows: number,
  length: number,
) {
  const inputGradient = new Float64Array(rows * length);
  const weightGradient = new Float64Array(length);
  const biasGradient = new Float64Array(length);
  for (let row = 0; row < rows; row++) {
    const g = rowOf(gradient, row, length);
    const h = rowOf(x, row, length).map((value) => (value - mean[row]!) * rstd[row]!);
    const q = g.map((value, i) => value * weight[i]!);
    const meanQ = sum(q) / length;
    const meanQH = sum(q.map((value, i) => value * h[i]!)) / length;
    for (let i = 0; i < length; i++) {
      inputGradient[row * length + i] = rstd[row]! * (q[i]! - meanQ - h[i]! * meanQH);
      weightGradient[i]! += g[i]! * h[i]!;
      biasGradient[i]! += g[i]!;
    }
  }
  return { inputGradient, weightGradient, biasGradient };
}

/** logsumexp(logits) - logits[label]; 0 where ignored, NaN where the label is out of range. */
export function crossEntropy(
  logits: ArrayLike<number>,
  labels: ArrayLike<number>,
  rows: number,
  classes: number,
  ignoreIndex: number,
): Float64Array {
  return Float64Array.from({ length: rows }, (_, row) => {
    const label = labels[row]!;
    if (label === ignoreIndex) return 0;
    const values = rowOf(logits, row, classes);
    return label >= 0 && label < classes ? logSumExp(values) - values[label]! : Number.NaN;
  });
}

/** (softmax(logits) - onehot(label)) gradient; 0 where ignored, NaN where the label is out of range. */
export function crossEntropyGrad(
  logits: ArrayLike<number>,
  labels: ArrayLike<number>,
  gradient: ArrayLike<number>,
  rows: number,
  classes: number,
  ignoreIndex: number,
): Float64Array {
  const probabilities = softmax(logits, rows, classes, false);
  return probabilities.map((probability, at) => {
    const row = Math.floor(at / classes);
    const label = labels[row]!;
    if (label === ignoreIndex) return 0;
    if (label < 0 || label >= classes) return Number.NaN;
    return (probability - (at % classes === label ? 1 : 0)) * gradient[row]!;
  });
}
