/** Normalisation of the channels of [outer, channels, inner] in float64, by its definition. */
type Numbers = ArrayLike<number>;

export interface Channels {
  readonly outer: number;
  readonly channels: number;
  readonly inner: number;
  readonly eps: number;
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

function placesOf({ outer, channels, inner }: Channels, channel: number): number[] {
  const places: number[] = [];
  for (let image = 0; image < outer; image++)
    for (let i = 0; i < inner; i++) places.push((image * channels + channel) * inner + i);
  return places;
}

export function batchNorm(x: Numbers, weight: Numbers, bias: Numbers, of: Channels) {
  const output = new Float64Array(x.length);
  const [mean, variance] = [new Float64Array(of.channels), new Float64Array(of.channels)];
  for (let c = 0; c < of.channels; c++) {
    const places = placesOf(of, c);
    mean[c] = sum(places.map((i) => x[i]!)) / places.length;
    variance[c] = sum(places.map((i) => (x[i]! - mean[c]!) ** 2)) / places.length;
    const rstd = 1 / Math.sqrt(variance[c]! + of.eps);
    for (const i of places) output[i] = (x[i]! - mean[c]!) * rstd * weight[c]! + bias[c]!;
  }
  return { output, mean, variance };
}

/** With h = (x - mean) rstd and q = weight g: dx = rstd (q - mean(q) - h mean(q h)), dweight = sum of g h, dbias = sum of g. */
export function batchNormGrad(x: Numbers, weight: Numbers, mean: Numbers, variance: Numbers, g: Numbers, of: Channels) {
  const inputGradient = new Float64Array(x.length);
  const [weightGradient, biasGradient] = [new Float64Array(of.channels), new Float64Array(of.channels)];
  for (let c = 0; c < of.channels; c++) {
    const places = placesOf(of, c);
    const rstd = 1 / Math.sqrt(variance[c]! + of.eps);
    const h = (i: number) => (x[i]! - mean[c]!) * rstd;
    weightGradient[c] = sum(places.map((i) => g[i]! * h(i)));
    biasGradient[c] = sum(places.map((i) => g[i]!));
    const [meanQ, meanQH] = [biasGradient[c]!, weightGradient[c]!].map((x) => (x * weight[c]!) / places.length);
    for (const i of places) inputGradient[i] = rstd * (g[i]! * weight[c]! - meanQ! - h(i) * meanQH!);
  }
  return { inputGradient, weightGradient, biasGradient };
}
