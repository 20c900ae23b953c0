/** Normalisation of groups of channels of each sample of [outer, channels, inner] in float64: each group is the one channel of a batch of runs. */
import { batchNorm, batchNormGrad, type Channels } from "./batch-norm";

type Numbers = ArrayLike<number>;

export interface Groups extends Channels {
  readonly groups: number;
}

const ofRuns = (values: Numbers, run: number, inner: number) =>
  Array.from({ length: inner }, (_, i) => values[run * inner + i]!);

export function groupNorm(x: Numbers, weight: Numbers, bias: Numbers, of: Groups) {
  const output = new Float64Array(x.length);
  const [mean, variance] = [0, 1].map(() => new Float64Array(of.outer * of.groups)) as [Float64Array, Float64Array];
  const size = of.channels / of.groups;
  for (let group = 0; group < of.outer * of.groups; group++) {
    const first = group * size * of.inner;
    const places = Array.from({ length: size * of.inner }, (_, i) => first + i);
    const one = { outer: 1, channels: 1, inner: places.length, eps: of.eps };
    const normal = batchNorm(
      places.map((i) => x[i]!),
      [1],
      [0],
      one,
    );
    for (const [k, i] of places.entries()) {
      const channel = Math.floor(i / of.inner) % of.channels;
      output[i] = normal.output[k]! * weight[channel]! + bias[channel]!;
    }
    mean[group] = normal.mean[0]!;
    variance[group] = normal.variance[0]!;
  }
  return { output, mean, variance };
}

/** With h = (x - mean) rstd: dx is batchNorm's of weight g, of each run dweight = sum of g h, dbias = sum of g. */
export function groupNormGrad(x: Numbers, weight: Numbers, mean: Numbers, variance: Numbers, g: Numbers, of: Groups) {
  const inputGradient = new Float64Array(x.length);
  const runs = of.outer * of.channels;
  const [weightGradient, biasGradient] = [new Float64Array(runs), new Float64Array(runs)];
  const size = of.channels / of.groups;
  for (let group = 0; group < of.outer * of.groups; group++) {
    const own = Array.from({ length: size }, (_, k) => group * size + k);
    const scaled = own.flatMap((run) => ofRuns(g, run, of.inner).map((each) => each * weight[run % of.channels]!));
    const places = own.flatMap((run) => ofRuns(x, run, of.inner));
    const statistics = [[mean[group]!], [variance[group]!]] as const;
    const one = { outer: 1, channels: 1, inner: places.length, eps: of.eps };
    inputGradient.set(batchNormGrad(places, [1], ...statistics, scaled, one).inputGradient, group * size * of.inner);
    for (const run of own) {
      const alone = { ...one, inner: of.inner };
      const found = batchNormGrad(ofRuns(x, run, of.inner), [1], ...statistics, ofRuns(g, run, of.inner), alone);
      weightGradient[run] = found.weightGradient[0]!;
      biasGradient[run] = found.biasGradient[0]!;
    }
  }
  return { inputGradient, weightGradient, biasGradient };
}
