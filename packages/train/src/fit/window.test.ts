/** A step's gradient is that of its samples, however they are cut into batches. */
import { Generator, GradScaler, init, type Tensor, tensor, where } from "@opt/core";
import { Embedding, Linear, mseLoss } from "@opt/nn";
import { SGD } from "@opt/sgd";
import { expectCode } from "@opt/testkit";
import { beforeEach, describe, expect, it } from "vitest";
import { fit } from "../fit";
import type { Callback } from "./events";
import type { FitOptions } from "./options";
import type { SummedLoss } from "./parts";

type Batch = [Tensor, Tensor];

beforeEach(() => init("js"));

/** Batches of so many rows, in float64. Each row has 3 targets; those below 0 are padding. */
function batchesOf(sizes: readonly number[], padded = false): Batch[] {
  const generator = new Generator(7);
  const draw = () => generator.nextFloat();
  return sizes.map((rows) => {
    const matrix = (width: number, next: () => number) =>
      tensor(Float64Array.from({ length: rows * width }, next), { dtype: "f64" }).reshape([rows, width]);
    return [matrix(2, draw), matrix(3, () => (padded && draw() < 0.4 ? -1 : draw()))];
  });
}

/** Each target that is not padding counts. */
function tokenLoss(output: Tensor, target: Tensor): SummedLoss {
  const isThere = target.ge(0);
  return { sum: where(isThere, output.sub(target).pow(2), 0).sum(), count: isThere.to("f32").sum() };
}

type Extras = Partial<FitOptions<Batch>>;

/** Weights after training on the batches, and what the run told. */
async function trained(data: Batch[], extras: Extras, epochs = 2) {
  const model = new Linear(2, 3, { generator: new Generator(1), bias: false }).to("f64");
  const optimizer = new SGD(model.namedParameters(), { lr: 0.5, momentum: 0.9 });
  const loss = extras.forward ? undefined : mseLoss;
  const history = await fit(model, { data, loss, optimizer, epochs, callbacks: [], ...extras });
  return { weights: Array.from(model.weight.dataSync()), history };
}

const close = (actual: number[], expected: number[]) =>
  actual.forEach((value, i) => {
    expect(value).toBeCloseTo(expected[i]!, 12);
  });

describe("five batches of gradient 1, at a rate of 1", () => {
  const batch: Batch = [tensor([[1]]), tensor([[0]])];
  const steps = [5, 3, 2, 2, 1, 1, 1];
  it.each(steps.map((count, i) => [i + 1, count]))("accumulated by %d: %d steps", async (accumulate, count) => {
    for (const compile of [true, false])
      for (const scaler of [undefined, new GradScaler({ initScale: 8 })]) {
        const model = new Linear(1, 1, { bias: false });
        model.weight.set([[0]]);
        const optimizer = new SGD(model.namedParameters(), { lr: 1 });
        const forward = ([x]: Batch) => model.forward(x).sum();
        const data = Array<Batch>(5).fill(batch);
        const options = { data, forward, optimizer, epochs: 3, accumulate, compile, scaler, callbacks: [] };
        const { losses } = await fit(model, options);
        expect([model.weight.dataSync()[0], losses.length]).toEqual([-3 * count, 3 * count]);
      }
  });
});

/** What may meet accumulation. */
const meets: readonly [string, () => Extras][] = [
  ["compiled", () => ({})],
  ["eager", () => ({ compile: false })],
  ["with a scaler", () => ({ scaler: new GradScaler({ initScale: 1024 }) })],
  ["with a limit of the norm", () => ({ clip: { norm: 0.05 } })],
  ["with a limit of values", () => ({ clip: { value: 0.02 } })],
  ["with a scaler and a limit", () => ({ scaler: new GradScaler({ initScale: 64 }), clip: { norm: 0.05 } })],
];

describe.each(meets)("%s", (_, extras) => {
  /** Windows of 12 and of 5 rows. */
  const whole = [12, 5];
  it.each([
    [2, [4, 8, 2, 3]],
    [3, [4, 4, 4, 3, 2]], // a short last window
    [4, [1, 2, 3, 6, 5]],
  ])("means: batches accumulated by %d, of %j rows, train as whole ones", async (accumulate, sizes) => {
    const cut = (sizes: readonly number[]) =>
      batchesOf([17]).flatMap(([x, y]) => {
        let at = 0;
        return sizes.map((rows): Batch => {
          at += rows;
          return [x.slice(at - rows, at), y.slice(at - rows, at)];
        });
      });
    const expected = await trained(cut(whole), extras());
    const actual = await trained(cut(sizes), { ...extras(), accumulate });
    close(actual.weights, expected.weights);
    close(actual.history.losses, expected.history.losses);
    close([actual.history.epochs[1]!.loss], [expected.history.epochs[1]!.loss]);
  });

  it.each([
    [
      2,
      [
        [0, 4],
        [4, 12],
        [12, 14],
        [14, 17],
      ],
    ],
    [
      3,
      [
        [0, 1],
        [1, 2],
        [2, 12],
        [12, 17],
      ],
    ],
  ])("sums: tokens accumulated by %d, in rows %j, train as whole ones", async (accumulate, ranges) => {
    const cut = (ranges: readonly (readonly number[])[]) =>
      batchesOf([17], true).flatMap(([x, y]) =>
        ranges.map(([begin, end]): Batch => [x.slice(begin!, end!), y.slice(begin!, end!)]),
      );
    const loss = tokenLoss;
    const expected = await trained(
      cut([
        [0, 12],
        [12, 17],
      ]),
      { ...extras(), loss },
    );
    const actual = await trained(cut(ranges), { ...extras(), loss, accumulate, validation: cut(ranges) });
    close(actual.weights, expected.weights);
    const [one, other] = [actual, expected].map(({ history }) => history.losses) as [number[], number[]];
    one.forEach((value, i) => {
      expect(value).toBeCloseTo(other[i]!, 6);
    });
  });
});

it("equal batches add up, and are divided once: the words of a loop by hand", async () => {
  for (const accumulate of [3, 7]) {
    const data = batchesOf(Array(accumulate).fill(5)).map(([x, y]): Batch => [x.to("f32"), y.to("f32")]);
    const begin = () => {
      const model = new Linear(2, 3, { generator: new Generator(1) });
      return { model, optimizer: new SGD(model.namedParameters(), { lr: 0.5 }) };
    };
    const hand = begin();
    for (const [x, y] of data) mseLoss(hand.model.forward(x), y).backward();
    for (const each of hand.model.parameters()) each.grad!.set(each.grad!.div(accumulate));
    hand.optimizer.step();
    const ours = begin();
    await fit(ours.model, { data, loss: mseLoss, optimizer: ours.optimizer, epochs: 1, accumulate, callbacks: [] });
    expect(ours.model.weight.tolist()).toEqual(hand.model.weight.tolist());
  }
});

it("batches without a token count for nothing, alone and among others", async () => {
  const [full, , empty] = batchesOf([4, 1, 3], true) as [Batch, Batch, Batch];
  const padding: Batch = [empty[0], empty[1].mul(0).sub(1)];
  const loss = tokenLoss;
  const expected = await trained([full], { loss });
  close((await trained([full, padding], { loss, accumulate: 2 })).weights, expected.weights);
  close((await trained([padding, full], { loss, accumulate: 2 })).weights, expected.weights);
  const alone = await trained([padding], { loss }, 1);
  close(alone.weights, (await trained([padding], { loss, accumulate: 2 }, 1)).weights);
  expect(alone.weights.every(Number.isFinite)).toBe(true);
});

it("epochs and validation have the mean over all tokens", async () => {
  const data = batchesOf([4, 9, 2], true);
  const outputs: { sum: number; count: number }[] = [];
  const model = new Linear(2, 3, { generator: new Generator(1) }).to("f64");
  for (const [x, y] of data) {
    const { sum, count } = tokenLoss(model.forward(x), y);
    outputs.push({ sum: sum.dataSync()[0]!, count: (count as Tensor).dataSync()[0]! });
  }
  const total = (key: "sum" | "count") => outputs.reduce((all, each) => all + each[key], 0);
  const optimizer = new SGD(model.namedParameters(), { lr: 0 });
  const options = { data, loss: tokenLoss, optimizer, epochs: 1, validation: data, callbacks: [] };
  const { epochs } = await fit(model, options);
  expect(epochs[0]!.loss).toBeCloseTo(total("sum") / total("count"), 6);
  expect(epochs[0]!.val_loss).toBeCloseTo(total("sum") / total("count"), 6);
});

it.each<[string, (output: Tensor) => unknown, RegExp]>([
  ["a count below 0", (output) => ({ sum: output.sum(), count: -1 }), /the count of a loss must be .*, got -1/],
  ["a count of several elements", (output) => ({ sum: output.sum(), count: output }), /or one element, got/],
  [
    "a sum that is no tensor",
    () => ({ sum: 1, count: 1 }),
    /loss must return the loss as a tensor, or \{ sum, count \}/,
  ],
])("rejects %s", async (_, loss, message) => {
  const run = () => trained(batchesOf([2]), { loss: loss as never });
  await expectCode("BAD_ARGUMENT", run);
  await expect(run()).rejects.toThrow(message);
});

it("rejects sums for some batches and means for others", async () => {
  const loss = (output: Tensor) => (output.shape[0] === 2 ? output.sum() : { sum: output.sum(), count: 3 });
  await expectCode("BAD_ARGUMENT", () => trained(batchesOf([2, 3]), { loss }));
});

describe("a step that failed", () => {
  const data = batchesOf([3, 3, 3]);
  /** Fails in the second batch of a window. */
  const failing = async (callbacks: readonly Callback[]) => {
    let calls = 0;
    const model = new Linear(2, 3, { generator: new Generator(1) }).to("f64");
    const forward = ([x, y]: Batch) => {
      if (++calls === 2) throw new Error("broken");
      return mseLoss(model.forward(x), y);
    };
    const optimizer = new SGD(model.namedParameters(), { lr: 0.5 });
    const options = { data, forward, optimizer, epochs: 1, accumulate: 3, compile: false, callbacks };
    await expect(fit(model, options)).rejects.toThrow("broken");
    return { model, optimizer, options };
  };

  it("leaves no gradients to the next run", async () => {
    const { model, options } = await failing([]);
    await fit(model, options);
    const other = new Linear(2, 3, { generator: new Generator(1) }).to("f64");
    const optimizer = new SGD(other.namedParameters(), { lr: 0.5 });
    await fit(other, { ...options, forward: ([x, y]: Batch) => mseLoss(other.forward(x), y), optimizer });
    expect(model.weight.tolist()).toEqual(other.weight.tolist());
  });

  it("is no place for a checkpoint, nor is the middle of another step", async () => {
    let saved: Promise<unknown> = Promise.resolve();
    const atEnd: Callback = {
      onTrainEnd(state) {
        saved = expectCode("BAD_STATE", () => state.contents());
      },
    };
    await failing([atEnd]);
    await saved;
    const within: Callback = { onStepBegin: (state) => expectCode("BAD_STATE", () => state.contents()) };
    await trained(data, { callbacks: [within], accumulate: 2 });
  });
});

it("row-sparse gradients add up in a window as dense ones do, compiled or not", async () => {
  const tokens = [
    [0, 1, 1],
    [2, 0, 3],
    [3, 3, 0],
    [1, 2, 3],
    [2, 2, 1],
  ].map((row) => tensor(row, { dtype: "i32" }));
  const data = tokens.map(
    (row): Batch => [
      row,
      tensor([
        [1, 0],
        [0, 2],
        [3, 1],
      ]),
    ],
  );
  const weightsOf = async (sparse: boolean, compile: boolean) => {
    const model = new Embedding(4, 2, { sparse, paddingIdx: 0, generator: new Generator(1) });
    const optimizer = new SGD(model.namedParameters(), { lr: 0.5 });
    await fit(model, { data, loss: mseLoss, optimizer, epochs: 2, accumulate: 2, compile, callbacks: [] });
    return Array.from(model.weight.dataSync());
  };
  const dense = await weightsOf(false, true);
  for (const compile of [true, false]) expect(await weightsOf(true, compile)).toEqual(dense);
});
