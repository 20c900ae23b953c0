// What is padding, ignored or masked may be any numbers: results and gradients are the same, and finite.
import { init, type Tensor, tensor, where } from "@opt/core";
import { seededArray } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import * as nn from "./index";

await init("js");

const array = (shape: readonly number[], seed: number) =>
  tensor(
    seededArray(
      "f64",
      shape.reduce((a, b) => a * b, 1),
      { seed },
    ),
    { shape, dtype: "f64" },
  );
const i32 = (values: number[], shape = [values.length]) => tensor(values, { shape, dtype: "i32" });
const bool = (values: number[], shape: number[]) => tensor(values, { shape }).ne(0);
/** Every parameter as numbers of its own. */
const filled = <M extends nn.Module>(layer: M): M => {
  layer.parameters().forEach((x, i) => void x.detach().set(array(x.shape, 50 + i)));
  return layer;
};

const NOT_FINITE = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1e30];
const f64 = { dtype: "f64" } as const;

interface Row {
  /** Of the input. */
  readonly shape: readonly number[];
  /** Broadcasts to the input: true where an element counts. */
  readonly counts: Tensor;
  readonly layer?: nn.Module;
  readonly run: (x: Tensor) => Tensor | readonly Tensor[];
  readonly others?: readonly number[];
}

const recurrent = (layer: nn.RNN | nn.GRU | nn.LSTM): Row => ({
  shape: [4, 2, 3],
  counts: bool([1, 1, 1, 1, 1, 0, 1, 0], [4, 2, 1]),
  layer: filled(layer),
  run: (x) => (layer as nn.GRU).forward(x, undefined, { lengths: [4, 2] }).flat(2),
});
const both = { ...f64, bidirectional: true, numLayers: 2 };
const attention = filled(new nn.MultiheadAttention(4, 2, { ...f64, batchFirst: true }));
const labels = (loss: typeof nn.crossEntropy | typeof nn.nllLoss, options: nn.CrossEntropyOptions = {}): Row => ({
  shape: [4, 3],
  counts: bool([1, 0, 1, 0], [4, 1]),
  run: (x) => loss(x, i32([2, 7, 0, 7]), { ignoreIndex: 7, ...options } as nn.NllLossOptions),
});
const bags = (mode: "sum" | "mean" | "max"): Row => ({
  shape: [4, 3],
  counts: bool([1, 1, 0, 1], [4, 1]),
  run: (x) =>
    nn.functionalCall(
      new nn.EmbeddingBag(4, 3, { ...f64, mode, paddingIdx: 2 }),
      { weight: x },
      i32([0, 2, 2, 1, 3, 2], [3, 2]),
    ),
});

const ROWS: Readonly<Record<string, Row>> = {
  "beyond the length of a sequence, RNN": recurrent(new nn.RNN(3, 2, both)),
  "beyond the length of a sequence, GRU": recurrent(new nn.GRU(3, 2, both)),
  "beyond the length of a sequence, LSTM": recurrent(new nn.LSTM(3, 2, both)),
  "beyond the length of a sequence, LSTM that projects": recurrent(new nn.LSTM(3, 3, { ...both, projSize: 2 })),
  "rows that are ignored, crossEntropy": labels(nn.crossEntropy),
  "rows that are ignored, crossEntropy of weights": labels(nn.crossEntropy, { weight: array([3], 3).abs() }),
  "rows that are ignored, crossEntropy that smooths": labels(nn.crossEntropy, {
    labelSmoothing: 0.2,
    reduction: "sum",
  }),
  "rows that are ignored, nllLoss": labels(nn.nllLoss),
  "rows that are ignored, nllLoss of weights": labels(nn.nllLoss, { weight: array([3], 3).abs(), reduction: "none" }),
  "beyond the times of a sequence, ctcLoss": {
    shape: [4, 2, 3],
    counts: bool([1, 1, 1, 1, 1, 0, 1, 0], [4, 2, 1]),
    run: (x) => nn.ctcLoss(x, [[1], [2]], [4, 2], [1, 1]),
  },
  "the row of padding, EmbeddingBag sum": bags("sum"),
  "the row of padding, EmbeddingBag mean": bags("mean"),
  "the row of padding, EmbeddingBag max": bags("max"),
  "keys that are padding": {
    shape: [2, 3, 4],
    counts: bool([1, 1, 0, 1, 0, 0], [2, 3, 1]),
    others: [1e30, -1e30], // times a weight of 0
    run: (x) => attention.forward(array([2, 2, 4], 8), x, x, { keyPaddingMask: bool([0, 0, 1, 0, 1, 1], [2, 3]) })[0],
    layer: attention,
  },
};

describe.each(Object.entries(ROWS))("%s", (_, { shape, counts, layer, run, others = NOT_FINITE }) => {
  const outcome = (other: number) => {
    const whole = array(shape, 1);
    const x = where(counts, whole, tensor(other, f64)).detach();
    x.requiresGrad = true;
    for (const weight of layer?.parameters() ?? []) weight.grad = null;
    const outputs = [run(x)].flat() as Tensor[];
    outputs
      .map((y) => y.mul(y).sum())
      .reduce((a, b) => a.add(b))
      .backward();
    const gradients = [where(counts, x.grad!, 0), ...(layer?.parameters() ?? []).map(({ grad }) => grad!)];
    return [...outputs, ...gradients].map((y) => [...y.dataSync()]);
  };

  it.each(others)("may be %d", (other) => {
    const usual = outcome(0);
    expect(usual.flat().every(Number.isFinite)).toBe(true);
    expect(outcome(other)).toEqual(usual);
  });
});
