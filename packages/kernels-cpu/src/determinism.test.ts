/** Results do not depend on the number of threads: work is split by its size alone, or where a split cannot change a sum. */
import { type Backend, denseHeads } from "@opt/core/backend";
import { Random } from "@opt/testkit";
import { afterAll, describe, expect, it } from "vitest";
import { missingDevice } from "../testing/missing-device";
import { openCpuBackend } from "./backend";
import { loadAddon } from "./load-addon";

type Run = (backend: Backend, input: Float32Array) => Float32Array;

const sliceOf = (backend: Backend, array: Float32Array) => ({
  memory: backend.wrap!(array),
  byteOffset: 0,
  length: array.length,
});

function matmul(m: number, n: number, k: number, transposeA = false, transposeB = false, batch = 1): Run {
  return (backend, input) => {
    const output = new Float32Array(batch * m * n);
    const kernel = backend.kernel({ kind: "matmul", transposeA, transposeB, dtype: "f32" });
    const a = sliceOf(backend, input.subarray(0, batch * m * k));
    const b = sliceOf(backend, input.subarray(0, batch * k * n));
    const sizes = { batch, m, n, k, strideA: m * k, strideB: k * n };
    backend.launch({ kind: "matmul", kernel, a, b, output: sliceOf(backend, output), ...sizes });
    return output;
  };
}

function sum(outer: number, length: number, inner: number): Run {
  return (backend, input) => {
    const output = new Float32Array(outer * inner);
    const kernel = backend.kernel({ kind: "reduce", op: "sum", dtype: "f32" });
    const data = sliceOf(backend, input.subarray(0, outer * length * inner));
    backend.launch({ kind: "reduce", kernel, input: data, output: sliceOf(backend, output), outer, length, inner });
    return output;
  };
}

function sumSquares(): Run {
  return (backend, input) => {
    const output = new Float32Array(2);
    const kernel = backend.kernel({ kind: "sumSquares", dtype: "f32" });
    const inputs = [sliceOf(backend, input), sliceOf(backend, input.subarray(3, 50_003))];
    backend.launch({ kind: "sumSquares", kernel, inputs, output: sliceOf(backend, output) });
    return output;
  };
}

/** Both launches. */
function attention(batch: number, queries: number, keys: number, causal: boolean): Run {
  return (backend, input) => {
    const [width, columns] = [20, 24];
    const sizes = { batch, queries, keys, width, columns, scale: 0.2, causal };
    const lengths = [batch * queries * width, batch * keys * width, batch * keys * columns, batch * queries * columns];
    const [query, key, value, gradient] = lengths.map((length) => sliceOf(backend, input.subarray(0, length)));
    const results = lengths.map((length) => new Float32Array(length));
    const [queryGradient, keyGradient, valueGradient, output] = results.map((array) => sliceOf(backend, array));
    const given = { query: query!, key: key!, value: value!, ...sizes, ...denseHeads(sizes) };
    const forward = backend.kernel({ kind: "attention", dtype: "f32" });
    backend.launch({ kind: "attention", kernel: forward, output: output!, ...given });
    const gradients = { queryGradient: queryGradient!, keyGradient: keyGradient!, valueGradient: valueGradient! };
    const kernel = backend.kernel({ kind: "attentionGrad", dtype: "f32" });
    backend.launch({ kind: "attentionGrad", kernel, gradient: gradient!, ...gradients, ...given });
    return Float32Array.from(results.flatMap((array) => [...array]));
  };
}

function batchNorm(outer: number, channels: number, inner: number): Run {
  return (backend, input) => {
    const output = new Float32Array(outer * channels * inner);
    const [weight, bias] = [
      sliceOf(backend, input.subarray(0, channels)),
      sliceOf(backend, input.subarray(5, channels + 5)),
    ];
    const [mean, variance] = [new Float32Array(channels), new Float32Array(channels)].map((x) => sliceOf(backend, x));
    const kernel = backend.kernel({ kind: "batchNorm", dtype: "f32" });
    const images = sliceOf(backend, input.subarray(0, output.length));
    const sizes = { outer, channels, inner, eps: 1e-5 };
    const written = { output: sliceOf(backend, output), mean: mean!, variance: variance! };
    backend.launch({ kind: "batchNorm", kernel, input: images, weight, bias, ...written, ...sizes });
    return output;
  };
}

/** Both launches. */
function lstm(length: number, batch: number, width: number, reverse: boolean): Run {
  return (backend, input) => {
    const sizes = { length, batch, width, reverse };
    const [state, all] = [batch * width, length * batch * width];
    const part = (count: number, from = 0) => sliceOf(backend, input.subarray(from, from + count));
    const made = [all, all, 4 * all, 4 * all, state, state].map((count) => new Float32Array(count));
    const [results, cells, gates, inputsGradient, firstHiddenGradient, firstCellGradient] = made.map((array) =>
      sliceOf(backend, array),
    );
    const [weight, cell] = [part(4 * width * width), part(state, 3)];
    const kept = { weight, cell, cells: cells!, gates: gates!, ...sizes };
    const given = { inputs: part(4 * all, 1), bias: part(4 * width, 2), hidden: part(state, 4), results: results! };
    backend.launch({ kind: "lstm", kernel: backend.kernel({ kind: "lstm", dtype: "f32" }), ...given, ...kept });
    const written = {
      inputsGradient: inputsGradient!,
      firstHiddenGradient: firstHiddenGradient!,
      firstCellGradient: firstCellGradient!,
    };
    const gradients = { gradient: part(all, 5), cellGradient: part(state, 6), ...written };
    backend.launch({
      kind: "lstmGrad",
      kernel: backend.kernel({ kind: "lstmGrad", dtype: "f32" }),
      ...gradients,
      ...kept,
    });
    return Float32Array.from(made.flatMap((array) => [...array]));
  };
}

describe.skipIf(missingDevice)(`cpu threads change no bit${missingDevice ?? ""}`, () => {
  const sets = missingDevice
    ? []
    : loadAddon()
        .instructionSets()
        .filter((name) => name !== null);
  const backends = sets.map((instructionSet) =>
    [1, 2, 3, 7].map((threads) => openCpuBackend({ instructionSet, threads })),
  );
  afterAll(() => {
    for (const backend of backends.flat()) backend.close();
  });
  const random = new Random(3);
  const input = Float32Array.from({ length: 400_000 }, () => random.uniform() - 0.5);

  it.each<[string, Run]>([
    ["matmul of 300 x 517 over 701", matmul(300, 517, 701)],
    ["matmul of 517 x 300 over 701", matmul(517, 300, 701)],
    ["matmul of 1 x 400,000 over 1", matmul(1, 400_000, 1)],
    ["matmul of 129 x 10 over 2000", matmul(129, 10, 2000)],
    ["matmul of 7 x 2000 over 200", matmul(7, 2000, 200)],
    ["matmul of 130 x 500 over 257", matmul(130, 500, 257)],
    ["matmul of 501 x 131 over 257", matmul(501, 131, 257)],
    ["matmul of 300 x 131 over 257, A transposed", matmul(300, 131, 257, true)],
    ["matmul of 131 x 300 over 257, B transposed", matmul(131, 300, 257, false, true)],
    ["matmul of 77 x 1000 over 257, both transposed", matmul(77, 1000, 257, true, true)],
    ["a batch of 2 x 120 x 110 over 100", matmul(120, 110, 100, false, false, 2)],
    ["a batch of 11 x 60 x 70 over 80", matmul(60, 70, 80, false, true, 11)],
    ["a batch of 90 x 21 x 19 over 50, A transposed", matmul(21, 19, 50, true, false, 90)],
    ["a batch of 9 x 1 x 300 over 130", matmul(1, 300, 130, false, false, 9)],
    ["the sum of a long axis", sum(1, 400_000, 1)],
    ["the sum of a first axis", sum(1, 4000, 100)],
    ["the sum of a middle axis", sum(4, 1000, 100)],
    ["sums of squares", sumSquares()],
    ["causal attention in 5 batches", attention(5, 200, 300, true)],
    ["batch normalisation of images", batchNorm(20, 7, 2000)],
    ["batch normalisation of rows", batchNorm(500, 333, 1)],
    ["an LSTM of 20 x 100", lstm(9, 20, 100, false)],
    ["an LSTM of 33 x 131, from the end", lstm(3, 33, 131, true)],
    ["attention of 1,100 queries", attention(1, 1100, 150, false)],
  ])("of %s", (_name, run) => {
    for (const ofOneSet of backends) {
      const [alone, ...others] = ofOneSet.map((backend) => run(backend, input));
      for (const result of others) expect(result).toAgreeWith(alone!, "bits");
    }
  });
});
