// The references that devices are measured against, held to the mathematics they state.
import { describe, expect, it } from "vitest";
import { windowOf } from "../contract/windows";
import { seededArray, seededIndices } from "../numbers/seeded";
import { attention, attentionGrad } from "./attention";
import { batchNorm, batchNormGrad } from "./batch-norm";
import { groupNorm, groupNormGrad } from "./group-norm";
import { lstm, lstmGrad } from "./lstm";
import { matmul } from "./matmul";
import { crossEntropy, crossEntropyGrad, layerNorm, layerNormGrad, softmax, softmaxGrad } from "./rows";
import { fold, maxPool2d, maxPool2dGrad, unfold, windowSizes } from "./windows";
import "../numbers/matcher";

const close = { absolute: 1e-7, relative: 1e-6 } as const;
const random = (size: number, seed: number) => seededArray("f64", size, { seed });
const dot = (a: ArrayLike<number>, b: ArrayLike<number>) => Array.from(a).reduce((sum, x, i) => sum + x * b[i]!, 0);

/** The gradient of sum(weights * f(x)) by central differences. */
function differences(f: (x: Float64Array) => ArrayLike<number>, x: Float64Array, weights: ArrayLike<number>) {
  const h = 2 ** -17;
  return x.map((value, i) => {
    const at = (moved: number) => dot(f(x.with(i, moved)), weights);
    return (at(value + h) - at(value - h)) / (2 * h);
  });
}

describe("references", () => {
  it("matmul: a product worked by hand, in all four orders of storage", () => {
    const shape = { batch: 1, m: 2, n: 2, k: 3, strideA: 0, strideB: 0 };
    const [a, aT, b, bT] = [
      [1, 2, 3, 4, 5, 6],
      [1, 4, 2, 5, 3, 6],
      [7, 8, 9, 10, 11, 12],
      [7, 9, 11, 8, 10, 12],
    ];
    for (const transposeA of [false, true]) {
      for (const transposeB of [false, true]) {
        const { product, magnitude } = matmul(
          transposeA ? aT : a,
          transposeB ? bT : b,
          {
            ...shape,
            transposeA,
            transposeB,
          },
          "f64",
        );
        expect(product).toAgreeWith([58, 64, 139, 154]);
        expect(magnitude).toBe(154);
      }
    }
  });

  it.each([false, true])("softmax (log %s): rows add up to 1, and its gradient is its derivative", (log) => {
    const x = random(12, 1);
    const y = softmax(x, 3, 4, log);
    const probabilities = log ? y.map(Math.exp) : y;
    expect(
      Array.from({ length: 3 }, (_, row) => dot(probabilities.subarray(row * 4, row * 4 + 4), [1, 1, 1, 1])),
    ).toAgreeWith([1, 1, 1], close);
    const g = random(12, 2);
    expect(softmaxGrad(y, g, 3, 4, log)).toAgreeWith(
      differences((z) => softmax(z, 3, 4, log), x, g),
      close,
    );
  });

  it.each([false, true])("attention (causal %s): its gradients are its derivatives", (causal) => {
    const sizes = { batch: 2, queries: 3, keys: 4, width: 2, columns: 3, scale: 0.7, causal };
    const [q, k, v, g] = [random(12, 1), random(16, 2), random(24, 3), random(18, 4)];
    const { queryGradient, keyGradient, valueGradient } = attentionGrad(q, k, v, g, sizes);
    const output = (a: Float64Array, b: Float64Array, c: Float64Array) => attention(a, b, c, sizes);
    expect(queryGradient).toAgreeWith(
      differences((z) => output(z, k, v), q, g),
      close,
    );
    expect(keyGradient).toAgreeWith(
      differences((z) => output(q, z, v), k, g),
      close,
    );
    expect(valueGradient).toAgreeWith(
      differences((z) => output(q, k, z), v, g),
      close,
    );
  });

  it.each([false, true])("lstm (reverse %s): its gradients are its derivatives", (reverse) => {
    const sizes = { length: 3, batch: 2, width: 2, reverse };
    const [inputs, weight, bias, hidden, cell] = [48, 16, 8, 4, 4].map((size, i) => random(size, i + 1)) as [
      Float64Array,
      Float64Array,
      Float64Array,
      Float64Array,
      Float64Array,
    ];
    const given = { inputs, weight, bias, hidden, cell };
    const [g, ofLast] = [random(12, 6), random(4, 7)];
    const found = lstmGrad(given, g, ofLast, sizes);
    const both = (moved: object) => {
      const { results, last } = lstm({ ...given, ...moved }, sizes);
      return [...results, ...last];
    };
    const weights = [...g, ...ofLast];
    expect(found.inputsGradient).toAgreeWith(
      differences((z) => both({ inputs: z }), inputs, weights),
      close,
    );
    expect(found.firstHiddenGradient).toAgreeWith(
      differences((z) => both({ hidden: z }), hidden, weights),
      close,
    );
    expect(found.firstCellGradient).toAgreeWith(
      differences((z) => both({ cell: z }), cell, weights),
      close,
    );
  });

  it("batchNorm: channels of mean 0 and variance 1, and its gradients are its derivatives", () => {
    const of = { outer: 2, channels: 2, inner: 3, eps: 1e-5 };
    const [x, weight, bias, g] = [random(12, 3), random(2, 4), random(2, 5), random(12, 6)];
    const plain = batchNorm(x, [1, 1], [0, 0], { ...of, eps: 0 }).output;
    expect([dot(plain, new Array(12).fill(1)), dot(plain, plain)]).toAgreeWith([0, 12], close);
    const { mean, variance } = batchNorm(x, weight, bias, of);
    const { inputGradient, weightGradient, biasGradient } = batchNormGrad(x, weight, mean, variance, g, of);
    const output = (...[a, w, b]: [Float64Array, Float64Array, Float64Array]) => batchNorm(a, w, b, of).output;
    const near = { absolute: 1e-5, relative: 1e-5 } as const;
    expect(inputGradient).toAgreeWith(
      differences((z) => output(z, weight, bias), x, g),
      near,
    );
    expect(weightGradient).toAgreeWith(
      differences((z) => output(x, z, bias), weight, g),
      close,
    );
    expect(biasGradient).toAgreeWith(
      differences((z) => output(x, weight, z), bias, g),
      close,
    );
  });

  it("groupNorm: groups of mean 0 and variance 1, and its gradients are its derivatives", () => {
    const of = { outer: 2, channels: 4, inner: 3, groups: 2, eps: 1e-5 };
    const [x, weight, bias, g] = [random(24, 3), random(4, 4), random(4, 5), random(24, 6)];
    const plain = groupNorm(x, [1, 1, 1, 1], [0, 0, 0, 0], { ...of, eps: 0 }).output;
    expect([dot(plain.subarray(6, 12), new Array(6).fill(1)), dot(plain, plain)]).toAgreeWith([0, 24], close);
    const { mean, variance } = groupNorm(x, weight, bias, of);
    const { inputGradient, weightGradient, biasGradient } = groupNormGrad(x, weight, mean, variance, g, of);
    const ofSamples = (each: Float64Array) => [0, 1, 2, 3].map((channel) => each[channel]! + each[4 + channel]!);
    const output = (...[a, w, b]: [Float64Array, Float64Array, Float64Array]) => groupNorm(a, w, b, of).output;
    expect(inputGradient).toAgreeWith(
      differences((z) => output(z, weight, bias), x, g),
      { absolute: 1e-5, relative: 1e-5 },
    );
    expect(ofSamples(weightGradient)).toAgreeWith(
      differences((z) => output(x, z, bias), weight, g),
      close,
    );
    expect(ofSamples(biasGradient)).toAgreeWith(
      differences((z) => output(x, weight, z), bias, g),
      close,
    );
  });

  it("layerNorm: rows of mean 0 and variance 1, and its gradients are its derivatives", () => {
    const [x, weight, bias, g] = [random(12, 3), random(4, 4), random(4, 5), random(12, 6)];
    const plain = layerNorm(x, [1, 1, 1, 1], [0, 0, 0, 0], 3, 4, 0).output;
    expect(dot(plain, new Array(12).fill(1))).toAgreeWith(0, close);
    expect(dot(plain, plain)).toAgreeWith(12, close);
    const { mean, rstd } = layerNorm(x, weight, bias, 3, 4, 1e-5);
    const { inputGradient, weightGradient, biasGradient } = layerNormGrad(x, weight, mean, rstd, g, 3, 4);
    const output = (...[a, w, b]: [Float64Array, Float64Array, Float64Array]) => layerNorm(a, w, b, 3, 4, 1e-5).output;
    expect(inputGradient).toAgreeWith(
      differences((z) => output(z, weight, bias), x, g),
      { absolute: 1e-5, relative: 1e-5 },
    );
    expect(weightGradient).toAgreeWith(
      differences((z) => output(x, z, bias), weight, g),
      close,
    );
    expect(biasGradient).toAgreeWith(
      differences((z) => output(x, weight, z), bias, g),
      close,
    );
  });

  it("crossEntropy: log of the classes for equal logits, and its gradient is its derivative", () => {
    const expectedLosses = [Math.LN2, Math.LN2, 0, Number.NaN];
    expect(crossEntropy([2, 2, 2, 2, 2, 2, 2, 2], [0, 1, -100, 4], 4, 2, -100)).toAgreeWith(expectedLosses, close);
    const [logits, labels, g] = [random(15, 7), seededIndices(5, 3, 8), random(5, 9)];
    labels[1] = -100;
    const expected = differences((z) => crossEntropy(z, labels, 5, 3, -100), logits, g);
    expect(crossEntropyGrad(logits, labels, g, 5, 3, -100)).toAgreeWith(expected, close);
  });

  it("windows: unfold and fold are adjoint, and a pool's gradient is its derivative", () => {
    const window = windowOf([2, 3, 7, 9], [3, 2], [2, 1], [1, 1], [1, 2]);
    const { planes, taps, plane, outPlane } = windowSizes(window);
    const [x, y, g] = [random(planes * plane, 10), random(planes * taps * outPlane, 11), random(planes * outPlane, 12)];
    expect(dot(unfold(x, window), y)).toAgreeWith(dot(x, fold(y, window)), close);
    const { indices } = maxPool2d(x, window);
    const expected = differences((z) => maxPool2d(z, window).output, x, g);
    expect(maxPool2dGrad(g, indices, window)).toAgreeWith(expected, { absolute: 1e-5, relative: 1e-5 });
  });

  it("windows: an image worked by hand", () => {
    const window = windowOf([1, 1, 2, 3], [2, 2], [1, 1]);
    expect(unfold([1, 2, 3, 4, 5, 6], window)).toAgreeWith([1, 2, 2, 3, 4, 5, 5, 6]);
    expect(fold([1, 2, 3, 4, 5, 6, 7, 8], window)).toAgreeWith([1, 5, 4, 5, 13, 8]);
    expect(maxPool2d([1, 9, 3, 4, 5, 9], window).indices).toAgreeWith([1, 1]);
  });
});
