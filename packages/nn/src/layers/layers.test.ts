import { Generator, randn, type Tensor, tensor } from "@opt/core";
import { expectCode, gradCheck } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import {
  Conv1d,
  Conv2d,
  Conv3d,
  ConvTranspose1d,
  ConvTranspose2d,
  Embedding,
  EmbeddingBag,
  Flatten,
  GELU,
  GRU,
  GRUCell,
  Identity,
  LayerNorm,
  type LayerOptions,
  Linear,
  LSTM,
  LSTMCell,
  MaxPool2d,
  type Module,
  MultiheadAttention,
  PReLU,
  ReLU,
  RNN,
  RNNCell,
  Sequential,
  Sigmoid,
  Tanh,
  TransformerDecoderLayer,
  TransformerEncoderLayer,
} from "../index";
import type { Layer } from "./container/sequential";

const f64 = { dtype: "f64" } as const;
const seeded = (seed: number) => ({ ...f64, generator: new Generator(seed) });
const close = { absolute: 1e-12, relative: 1e-12 };

const x = tensor(
  [
    [1, 2, -1],
    [0.5, -2, 3],
  ],
  f64,
);
function withState<L extends Layer>(layer: L, state: Record<string, number[] | number[][] | number[][][][]>): L {
  layer.loadStateDict(Object.fromEntries(Object.entries(state).map(([name, value]) => [name, tensor(value, f64)])));
  return layer;
}

// The expected numbers are PyTorch's, in float64.
describe("layers compute what PyTorch's do", () => {
  const rows: [string, Layer, Tensor, number[]][] = [
    [
      "Linear",
      withState(new Linear(3, 2, f64), {
        weight: [
          [0.1, -0.2, 0.3],
          [1, 0.5, -0.5],
        ],
        bias: [0.01, -0.02],
      }),
      x,
      [-0.59, 2.48, 1.36, -2.02],
    ],
    [
      "LayerNorm",
      withState(new LayerNorm(3, f64), { weight: [1, 2, 0.5], bias: [0, 0.1, -0.1] }),
      x,
      [0.2672603828625744, 2.2380830629005954, -0.7681509571564359, 0, -2.349486803400777, 0.5123717008501943],
    ],
    [
      "LayerNorm without weight and bias",
      new LayerNorm(3, { eps: 0.5, elementwiseAffine: false }),
      x,
      [0.2324952774876386, 0.9299811099505544, -1.1624763874381927, 0, -1.1572751247156892, 1.1572751247156892],
    ],
    ["ReLU", new ReLU(), x, [1, 2, 0, 0.5, 0, 3]],
    [
      "GELU",
      new GELU(),
      x,
      [
        0.841344746068543, 1.9544997361036416, -0.15865525393145702, 0.34573123063700656, -0.04550026389635842,
        2.99595030590511,
      ],
    ],
    [
      "Tanh",
      new Tanh(),
      x,
      [
        0.7615941559557649, 0.9640275800758169, -0.7615941559557649, 0.4621171572600098, -0.9640275800758169,
        0.9950547536867305,
      ],
    ],
    [
      "Sigmoid",
      new Sigmoid(),
      x,
      [
        0.7310585786300049, 0.8807970779778823, 0.2689414213699951, 0.6224593312018546, 0.11920292202211755,
        0.9525741268224334,
      ],
    ],
  ];
  it.each(rows)("%s", async (_, layer, input, expected) => {
    expect(await layer.forward(input).data()).toAgreeWith(Float64Array.from(expected), close);
  });

  it("Embedding picks rows", async () => {
    const layer = new Embedding(3, 2, f64);
    layer.weight.set([
      [1, 2],
      [3, 4],
      [5, 6],
    ]);
    const output = layer.forward(tensor([[2, 0]], { dtype: "i32" }));
    expect(output.shape).toEqual([1, 2, 2]);
    expect([...(await output.data())]).toEqual([5, 6, 1, 2]);
  });

  it("Linear takes any leading axes, and a bare vector", () => {
    const layer = new Linear(3, 2);
    expect(layer.forward(randn([4, 5, 3])).shape).toEqual([4, 5, 2]);
    expect(layer.forward(randn([3])).shape).toEqual([2]);
    expect(layer.forward(randn([0, 3])).shape).toEqual([0, 2]);
  });

  it("Identity is a view of its input, in training and in a state without it", () => {
    const x = tensor([1, 2]);
    const model = new Sequential(new Identity(), new ReLU());
    expect([...model.forward(x).dataSync(), Object.keys(model.stateDict()).length]).toEqual([1, 2, 0]);
    new Identity().forward(x).dispose();
    expect(x.isDisposed).toBe(false);
  });

  it("Flatten keeps the batch", () => expect(new Flatten().forward(randn([2, 3, 4])).shape).toEqual([2, 12]));
});

describe("gradients agree with finite differences", () => {
  const rows: [string, Layer, Tensor][] = [
    ["Linear", new Linear(3, 2, seeded(1)), randn([2, 2, 3], seeded(2))],
    ["Linear without bias", new Linear(3, 2, { ...seeded(1), bias: false }), randn([3], seeded(3))],
    ["LayerNorm", new LayerNorm([2, 3], f64), randn([4, 2, 3], seeded(4))],
    ["LayerNorm without both", new LayerNorm([2, 3], { elementwiseAffine: false }), randn([4, 2, 3], seeded(4))],
    ["LayerNorm without bias", new LayerNorm(3, { ...f64, bias: false }), randn([4, 3], seeded(5))],
  ];
  it.each(rows)("%s", async (_, layer, input) => {
    const names = [...layer.namedParameters()].map(([name]) => name);
    await gradCheck(
      (at, ...values) => {
        Object.assign(layer, Object.fromEntries(names.map((name, i) => [name, values[i]])));
        return layer.forward(at!);
      },
      [input, ...layer.parameters()],
    );
  });

  it("Embedding adds up the gradients of a row used twice", async () => {
    const layer = new Embedding(4, 3, seeded(14));
    const indices = tensor([[3, 1, 3]], { dtype: "i32" });
    await gradCheck((weight) => Object.assign(layer, { weight }).forward(indices), [layer.weight]);
  });
});

describe("layers reject", () => {
  const rows: [string, () => unknown][] = [
    ["no features", () => new Linear(0, 2)],
    ["half a feature", () => new Linear(3, 1.5)],
    ["an empty table", () => new Embedding(0, 2)],
    ["a norm over nothing", () => new LayerNorm([3, 0])],
    ["a negative eps", () => new LayerNorm(3, { eps: -1 })],
    ["a kernel without width", () => new Conv2d(1, 1, [2, 0])],
    ["a stride of 0", () => new Conv2d(1, 1, 2, { stride: 0 })],
    ["a pool of 0", () => new MaxPool2d(0)],
    ["a stride in the place of options", () => new MaxPool2d(3, 2 as never)],
    ["a bias in the place of options", () => new Linear(2, 3, false as never)],
    ["options that it does not know", () => new Conv2d(1, 1, 2, { groups: 2 } as never)],
    ["what is no generator", () => new Linear(2, 2, { generator: {} as never })],
    ["an array in the place of a tensor", () => new Linear(2, 2).forward([[1, 2]] as never)],
    ["an array of indices", () => new Embedding(2, 2).forward([0] as never)],
    ["a list of layers", () => new Sequential([new ReLU()] as never)],
  ];
  it.each(rows)("%s", (_, body) => expectCode("BAD_ARGUMENT", body));

  it("inputs of another width", () => {
    expectCode("BAD_SHAPE", () => new Linear(3, 2).forward(randn([2, 4])));
    expectCode("BAD_SHAPE", () => new LayerNorm(3).forward(randn([2, 4])));
    expectCode("BAD_SHAPE", () => new Conv2d(2, 1, 2).forward(randn([1, 1, 4, 4])));
    expectCode("BAD_SHAPE", () => new MaxPool2d(5).forward(randn([1, 1, 4, 4])));
  });

  it("indices that are floats", () => expectCode("BAD_DTYPE", () => new Embedding(2, 2).forward(randn([2]))));
});

it("the first weights are PyTorch's distributions, and the generator's", async () => {
  const weights = async (seed: number) =>
    (await new Linear(100, 50, { generator: new Generator(seed) }).weight.data()) as Float32Array;
  const first = await weights(3);
  expect(Math.max(...first)).toBeGreaterThan(0.099);
  expect(Math.max(...first.map(Math.abs))).toBeLessThanOrEqual(0.1);
  expect(first).toEqual(await weights(3));
  expect(first).not.toEqual(await weights(4));
  const conv = await new Conv2d(4, 8, 5, { generator: new Generator(3) }).weight.data();
  expect(Math.max(...conv.map(Math.abs))).toBeLessThanOrEqual(0.1);
});

it("layers live where they are told", () => {
  const model = new Sequential(new Linear(2, 2, { dtype: "bf16", device: "js" }), new LayerNorm(2, { dtype: "f64" }));
  expect([...model.parameters()].map(({ dtype }) => dtype)).toEqual(["bf16", "bf16", "f64", "f64"]);
  expectCode("UNKNOWN_DEVICE", () => new Linear(2, 2, { device: "abacus" }));
});

it.each<[string, (options: LayerOptions) => Module]>([
  ["Linear", (options) => new Linear(2, 2, options)],
  ["Embedding", (options) => new Embedding(2, 2, options)],
  ["EmbeddingBag", (options) => new EmbeddingBag(2, 2, options)],
  ["Conv1d", (options) => new Conv1d(2, 2, 2, options)],
  ["Conv2d", (options) => new Conv2d(2, 2, 2, options)],
  ["Conv3d", (options) => new Conv3d(2, 2, 2, options)],
  ["ConvTranspose1d", (options) => new ConvTranspose1d(2, 2, 2, options)],
  ["ConvTranspose2d", (options) => new ConvTranspose2d(2, 2, 2, options)],
  ["RNN", (options) => new RNN(2, 2, options)],
  ["LSTM", (options) => new LSTM(2, 2, options)],
  ["GRU", (options) => new GRU(2, 2, options)],
  ["RNNCell", (options) => new RNNCell(2, 2, options)],
  ["LSTMCell", (options) => new LSTMCell(2, 2, options)],
  ["GRUCell", (options) => new GRUCell(2, 2, options)],
  ["MultiheadAttention", (options) => new MultiheadAttention(2, 1, options)],
  ["TransformerEncoderLayer", (options) => new TransformerEncoderLayer(2, 1, options)],
  ["TransformerDecoderLayer", (options) => new TransformerDecoderLayer(2, 1, options)],
])("%s begins as its generator draws, in its dtype and on its device", (_, make) => {
  const own = tensor([]).device;
  const begun = (seed: number) => {
    const given: LayerOptions = { dtype: "f64", device: own, generator: new Generator(seed) };
    const parameters = [...make(given).parameters()];
    expect(parameters.every(({ dtype, device }) => dtype === "f64" && device === own)).toBe(true);
    return parameters.map((parameter) => parameter.tolist());
  };
  expect(begun(1)).toEqual(begun(1));
  expect(begun(1)).not.toEqual(begun(2));
});

it("PReLU begins at init", () => {
  expect(new PReLU(2, { init: 0.5 }).forward(tensor([[-4, 2]])).tolist()).toEqual([[-2, 2]]);
  expect(new PReLU().weight.tolist()).toEqual([0.25]);
});
