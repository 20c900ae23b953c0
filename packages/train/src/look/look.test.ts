import "@opt/kernels-wasm";
import { Adam, AdamW } from "@opt/adam-amsgrad";
import { Generator, init, randn, type Tensor, tensor, zeros } from "@opt/core";
import { DataLoader, TensorDataset } from "@opt/data";
import {
  AdaptiveAvgPool2d,
  BatchNorm2d,
  Conv2d,
  crossEntropy,
  Embedding,
  Flatten,
  LayerNorm,
  Linear,
  LSTM,
  MaxPool2d,
  Module,
  ModuleList,
  mseLoss,
  ReLU,
  Sequential,
} from "@opt/nn";
import { SGD } from "@opt/sgd";
import { expectCode } from "@opt/testkit";
import { beforeEach, describe, expect, it } from "vitest";
import "@opt/parallel";
import { FakeDevice } from "../../../core/testing/fake-backend";
import { memoryRanks } from "../../../parallel/testing/memory-ranks";
import { begin, optionsOf } from "../../testing/runs";
import { findLearningRate } from "./find-learning-rate";
import { plot } from "./plot";
import { summary } from "./summary";

beforeEach(() => init("js"));

class Block extends Module {
  conv1: Conv2d;
  bn1: BatchNorm2d;
  conv2: Conv2d;
  bn2: BatchNorm2d;
  relu = new ReLU();
  downsample?: Sequential;

  constructor(from: number, to: number, stride: number) {
    super();
    const conv = (channels: number, s: number) => new Conv2d(channels, to, 3, { stride: s, padding: 1, bias: false });
    this.conv1 = conv(from, stride);
    this.bn1 = new BatchNorm2d(to);
    this.conv2 = conv(to, 1);
    this.bn2 = new BatchNorm2d(to);
    if (stride > 1)
      this.downsample = new Sequential(new Conv2d(from, to, 1, { stride, bias: false }), new BatchNorm2d(to));
  }

  forward(x: Tensor): Tensor {
    const y = this.bn2.forward(this.conv2.forward(this.relu.forward(this.bn1.forward(this.conv1.forward(x)))));
    return this.relu.forward(y.add(this.downsample?.forward(x) ?? x));
  }
}

const resnet18 = () =>
  new Sequential(
    new Conv2d(3, 64, 7, { stride: 2, padding: 3, bias: false }),
    new BatchNorm2d(64),
    new ReLU(),
    new MaxPool2d(3, { stride: 2, padding: 1 }),
    ...[64, 128, 256, 512].map((to, i) => {
      const from = Math.max(64, to / 2);
      return new Sequential(new Block(from, to, i === 0 ? 1 : 2), new Block(to, to, 1));
    }),
    new AdaptiveAvgPool2d(1),
    new Flatten(),
    new Linear(512, 1000),
  );

/** The layers of GPT-2; attention, which has no parameters of its own, is left out. Its small form has 124,439,808 parameters. */
class Gpt2 extends Module {
  wte: Embedding;
  wpe: Embedding;
  blocks: ModuleList;
  norm: LayerNorm;

  constructor(tokens: number, length: number, width: number, blocks: number) {
    super();
    this.wte = new Embedding(tokens, width);
    this.wpe = new Embedding(length, width);
    const block = () =>
      new Sequential(
        new LayerNorm(width),
        new Linear(width, 3 * width),
        new Part(),
        new Linear(width, width),
        new LayerNorm(width),
        new Linear(width, 4 * width),
        new Linear(4 * width, width),
      );
    this.blocks = new ModuleList(Array.from({ length: blocks }, block));
    this.norm = new LayerNorm(width);
  }

  forward(tokens: Tensor, positions: Tensor): Tensor {
    let x = this.wte.forward(tokens).add(this.wpe.forward(positions));
    for (const block of this.blocks) x = (block as Sequential).forward(x);
    return this.norm.forward(x);
  }
}

class Part extends Module {
  forward(x: Tensor): Tensor {
    return x.slice(0, x.shape.at(-1)! / 3, -1);
  }
}

class Reader extends Module {
  embedding = new Embedding(20, 300);
  lstm = new LSTM(300, 512, { numLayers: 2 });
  decoder = new Linear(512, 20);

  forward(tokens: Tensor): Tensor {
    const [output] = this.lstm.forward(this.embedding.forward(tokens));
    return this.decoder.forward(output);
  }
}

const indices = (count: number) => tensor(new Int32Array(count), { shape: [1, count] });

describe("summary counts as torchinfo does", () => {
  it.each<[string, () => [Module, Tensor | Tensor[]], string[]]>([
    // torchinfo counts 1,814,083,944 at 224 x 224: 1,813,561,344 of the convolutions, which are 49 times those of 32 x 32.
    [
      "ResNet-18",
      () => [resnet18(), zeros([1, 3, 32, 32])],
      ["11,689,512", "37,534,056", "Input: 0.01 MB", "Forward and backward: 0.82 MB", "Parameters: 46.76 MB"],
    ],
    // (tokens + length + 2) width + blocks (12 width^2 + 13 width)
    ["GPT-2, smaller", () => [new Gpt2(100, 16, 32, 2), [indices(2), indices(2)]], ["Parameters: 29,184"]],
    ["an LSTM", () => [new Reader(), indices(100)], ["3,784,580", "376,848,260"]],
  ])("%s", async (_, make, expected) => {
    await init("wasm");
    const [model, input] = make();
    const text = summary(model, input);
    for (const part of expected) expect(text).toContain(part);
    for (const x of model.parameters()) x.dispose();
  });

  it("shows a table, counts shared parameters once and leaves the model as it was", () => {
    const shared = new Linear(4, 4);
    const model = new Sequential(shared, new ReLU(), shared, new Linear(4, 2).freeze());
    expect(summary(model, zeros([3, 4]))).toMatchSnapshot();
    expect(model.modules().every(({ training }) => training)).toBe(true);
  });
});

it("findLearningRate ends where the loss grows, suggests a rate below, and leaves everything as it was", async () => {
  const model = new Linear(1, 1, { generator: new Generator(1) });
  const optimizer = new SGD(model.namedParameters(), { lr: 0.5, momentum: 0.5 });
  const data = [[tensor([[1]]), tensor([[2]])]] as [Tensor, Tensor][];
  const state = async () => [...(await Promise.all(model.parameters().map((x) => x.data()))), optimizer.groups[0]!.lr];
  const before = await state();
  const { rates, losses, suggestion } = await findLearningRate(model, { data, loss: mseLoss, optimizer });
  expect(await state()).toEqual(before);
  expect(rates[0]).toBe(1e-7);
  expect(rates).toHaveLength(losses.length);
  expect(rates.length).toBeLessThan(100); // the loss grew
  expect(suggestion).toBeGreaterThan(1e-3);
  expect(suggestion).toBeLessThan(0.75); // 1.5 / 2, from which momentum 0.5 diverges
});

it("findLearningRate suggests where the loss falls, whatever the noise of small batches", async () => {
  for (const seed of [1, 2, 3]) {
    const generator = new Generator(seed);
    const x = randn([64, 4], { generator });
    const y = x.sum(1, true).add(randn([64, 1], { generator }).mul(2));
    const data = new DataLoader(new TensorDataset(x, y), { batchSize: 4, shuffle: true, generator });
    const model = new Sequential(new Linear(4, 16, { generator }), new ReLU(), new Linear(16, 1, { generator }));
    const { rates, losses, suggestion } = await findLearningRate(model, {
      data,
      loss: mseLoss,
      optimizer: new Adam(model.namedParameters()),
    });
    expect(suggestion).toBeGreaterThan(1e-4);
    expect(suggestion).toBeLessThanOrEqual(rates[losses.lastIndexOf(Math.min(...losses.slice(10)))]!);
  }
});

it("findLearningRate suggests a rate of use where the last loss is no number", async () => {
  const model = new Linear(1, 1, { generator: new Generator(1) });
  const data = [[tensor([[1]]), tensor([[2]])]] as [Tensor, Tensor][];
  const last = 80;
  let calls = 0;
  const forward = ([x, y]: [Tensor, Tensor]) => mseLoss(model.forward(x), y).mul(++calls > last ? Number.NaN : 1);
  const optimizer = new SGD(model.namedParameters(), { lr: 0.5 });
  const { losses, suggestion } = await findLearningRate(model, { data, forward, optimizer, compile: false } as never);
  expect(losses.at(-1)).toBeNaN();
  expect(suggestion).toBeGreaterThan(1e-3);
});

it("findLearningRate tries rates between two, by the loss that forward gives", async () => {
  const model = new Linear(1, 1, { generator: new Generator(1) });
  const optimizer = new SGD(model.namedParameters(), { lr: 0.5 });
  const data = [[tensor([[1]]), tensor([[2]])]] as [Tensor, Tensor][];
  let calls = 0;
  const forward = ([x, y]: [Tensor, Tensor]) => {
    calls++;
    return mseLoss(model.forward(x), y);
  };
  const { rates } = await findLearningRate(model, { data, forward, optimizer, from: 0.001, to: 0.1, steps: 3 });
  expect(rates.map((rate) => Number(rate.toFixed(9)))).toEqual([0.001, 0.01, 0.1]);
  expect(calls).toBeGreaterThan(0);
});

it("findLearningRate gives the rates whose losses it has, where the device answers later", async () => {
  const device = new FakeDevice({ async: true });
  const model = new Linear(1, 1, { generator: new Generator(1), device });
  const optimizer = new SGD(model.namedParameters(), { lr: 0.5 });
  const batch = [tensor([[1]], { device }), tensor([[2]], { device })] as [Tensor, Tensor];
  const data = Array.from({ length: 100 }, () => batch);
  const { rates, losses } = await findLearningRate(model, { data, loss: mseLoss, optimizer });
  expect(losses.length).toBeLessThan(100);
  expect(rates).toHaveLength(losses.length);
});

it("findLearningRate tries the same rates on all ranks, and ends where one of them diverges", async () => {
  const found = await Promise.all(
    memoryRanks(2).map((communicator, rank) => {
      const model = new Linear(1, 1, { generator: new Generator(1) });
      const optimizer = new SGD(model.namedParameters(), { lr: 0.5, momentum: 0.5 });
      const data = [[tensor([[1]]), tensor([[2 + rank]])]] as [Tensor, Tensor][];
      return findLearningRate(model, { data, loss: mseLoss, optimizer, communicator });
    }),
  );
  expect(found[1]!.rates).toEqual(found[0]!.rates);
  expect(found[0]!.rates.length).toBeLessThan(100);
  expect(found[1]!.losses).not.toEqual(found[0]!.losses);
});

describe("plot", () => {
  const history = { losses: [], epochs: [3, 2, 1].map((loss) => ({ loss, val_loss: loss + 0.5, lr: 1, seconds: 1 })) };

  /** The words of a picture: ticks, labels of axes, names of curves. */
  const wordsIn = (svg: string, kind: string) =>
    [...svg.matchAll(new RegExp(`<text [^>]*class="${kind}"[^>]*>([^<]*)<`, "g"))].map(([, words]) => words);

  it("draws a history with ticks, labels and a legend", () => {
    const svg = plot(history);
    expect(svg.match(/<polyline/g)!.length).toBe(4); // two curves and their samples in the legend
    expect(wordsIn(svg, "axis")).toEqual(["epoch", "loss"]);
    expect(wordsIn(svg, "name")).toEqual(["loss", "val_loss"]);
    expect(wordsIn(svg, "tick")).toEqual(["1", "1.5", "2", "2.5", "3", "1", "1.5", "2", "2.5", "3", "3.5"]);
    expect(svg).toContain("x: epoch, 1 to 3; y: loss, 1 to 3.5. loss: from 3 to 1; val_loss: from 3.5 to 1.5");
  });

  it("draws accuracies on a scale of their own, and no other metric of a history", () => {
    const epochs = history.epochs.map((record, i) => ({ ...record, accuracy: 0.5 + i / 10, perplexity: 100 }));
    const svg = plot({ ...history, epochs });
    expect(wordsIn(svg, "axis")).toEqual(["epoch", "loss", "epoch", "accuracy"]);
    expect(wordsIn(svg, "tick")).toContain("70 %");
    expect(svg).not.toContain("perplexity");
  });

  it("draws curves by logarithmic axes that say so, with gaps where there is no number", () => {
    const options = { x: [1, 10, 100], log: true, logY: true, xLabel: "rate", yLabel: "error", title: "Rates" };
    const svg = plot({ "a < b": [0.01, Number.NaN, 1] }, options);
    expect(wordsIn(svg, "axis")).toEqual(["rate (log scale)", "error (log scale)"]);
    expect(wordsIn(svg, "tick")).toEqual(["1", "10", "100", "0.01", "0.1", "1"]);
    expect(svg.match(/<polyline/g)).toHaveLength(2); // one before the gap, one behind it
    expect(svg).toContain('aria-label="Rates. x: rate, logarithmic, 1 to 100; ');
    expect(svg).toContain("a &lt; b: from 0.01 to 1");
    expect(plot({ a: [1, 2] }, { width: 300, height: 200 })).toContain('viewBox="0 0 300 200"');
  });

  it("draws into an element of a page", () => {
    const element = { innerHTML: "before" };
    expect(plot(history, { element })).toBe(element.innerHTML);
    expect(element.innerHTML).toMatch(/^<svg .*<\/svg>$/);
  });

  it("draws nothing of epochs that lack a number", () => {
    const history = { epochs: [{ loss: 1 }, { loss: 2, val_loss: 3 }], losses: [] } as never;
    expect(plot(history, { as: "blocks" })).toContain("val_loss: 3 to 3");
  });

  it("draws blocks", () => {
    expect(plot({ loss: [4, 3, 2, 1] }, { as: "blocks", height: 2 })).toBe("loss: 1 to 4\n█▃\n██▆▁");
    expect(plot({ loss: [4, Number.NaN, 0] }, { as: "blocks", height: 2 })).toBe("loss: 0 to 4\n█\n█ ▁");
  });
});

it.each<[string, () => unknown]>([
  ["no module", () => summary({} as never, zeros([1]))],
  ["no curve", () => plot({})],
  ["another form", () => plot({ a: [1] }, { as: "png" as never })],
])("rejects wrong arguments: %s", (_, make) => expectCode("BAD_ARGUMENT", make));

it.each<[string, object]>([
  ["rates", { from: 1, to: 0.1 }],
  ["steps", { steps: 1 }],
])("findLearningRate rejects wrong %s", async (_, wrong) => {
  const run = begin("mlp", (model) => new AdamW(model.namedParameters()), {});
  const { data } = optionsOf(run, {});
  const options = { data, loss: crossEntropy, optimizer: run.optimizer, ...wrong };
  await expectCode("BAD_ARGUMENT", () => findLearningRate(run.model, options));
});

it.each([
  ["f64", 128],
  ["f32", 64],
  ["f16", 32],
  ["bf16", 32],
] as const)("summary counts the bytes of %s", (dtype, bytes) => {
  const text = summary(new Linear(4, 4, { bias: false, dtype }), tensor([[1, 2, 3, 4]], { dtype }));
  expect(text).toMatch(new RegExp(` 16 +${bytes} `));
});
