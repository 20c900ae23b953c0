/** What reads gradients takes row-sparse ones as dense ones: norms, clipping, loss scaling, accumulation, steps. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import "@opt/kernels-webgpu";
import { AdamW } from "@opt/adam-amsgrad";
import { clipGradNorm, clipGradNormEach, clipGradValue, compile, type Device, Generator, GradScaler, type Tensor, tensor, tidy } from "@opt/core";
import { Embedding, EmbeddingBag } from "@opt/nn";
import { SGD } from "@opt/sgd";
import { eachDevice, sample, useSoftwareVulkan } from "@opt/testkit";
import { describe, expect, it } from "vitest";

useSoftwareVulkan();

const [ROWS, WIDTH, PADDING] = [6, 2, 1];
const BATCHES: Readonly<Record<string, number[]>> = {
  "each row once": [4, 0, 3],
  "rows that come twice": [4, 0, 4, 4, 0],
  "padding among rows that come twice": [4, PADDING, 0, PADDING, 4],
  "padding first": [PADDING, PADDING, 5],
  "padding alone": [PADDING, PADDING],
  "no rows": [],
};

/** A table and a bag of three kinds of rows, the loss of which has a gradient of its own in each place. */
function model(on: Device, indices: readonly number[], sparse: boolean, atPadding = 3) {
  const options = { sparse, paddingIdx: PADDING, device: on, generator: new Generator(2) };
  const [table, bag] = [new Embedding(ROWS, WIDTH, options), new EmbeddingBag(ROWS, WIDTH, { ...options, mode: "sum" })];
  const at = tensor(Int32Array.from(indices), { shape: [indices.length], dtype: "i32", device: on });
  const factors = tensor(
    Float32Array.from(indices.flatMap((row, i) => (row === PADDING ? [atPadding, -atPadding] : [i + 1.5, 0.5 - i]))),
    { shape: [indices.length, WIDTH], device: on },
  );
  const offsets = tensor([0, Math.min(2, indices.length)], { dtype: "i32", device: on });
  const loss = () => table.forward(at).mul(factors).sum().add(bag.forward(at, { offsets }).square().mul(0.25).sum());
  return { weights: [table.weight, bag.weight], loss };
}

type Model = ReturnType<typeof model>;

type Wrap = <Result extends Tensor | undefined>(step: () => Result) => () => Result;

async function numbersOf({ weights }: Model, ...more: (Tensor | undefined)[]): Promise<number[]> {
  const read = [...weights, ...more].map(async (x) => (x === undefined ? [] : [...((await x.data()) as Float32Array)]));
  return (await Promise.all(read)).flat();
}

/** Steps by gradients after `change`: the weights show what it has left of them. */
function changedBy(change: (weights: readonly Tensor[]) => Tensor | undefined, passes = 1) {
  return async (made: Model, wrap: Wrap) => {
    const optimizer = new SGD(made.weights, { lr: 0.5 });
    const step = wrap(() => {
      for (let pass = 0; pass < passes; pass++) made.loss().backward();
      const result = change(made.weights)?.clone();
      optimizer.step();
      optimizer.zeroGrad();
      return result;
    });
    const seen: number[] = [];
    for (let i = 0; i < 3; i++) seen.push(...(await numbersOf(made, step())));
    return seen;
  };
}

function steppedBy(make: (weights: Tensor[]) => SGD | AdamW) {
  return (made: Model, wrap: Wrap) => {
    const optimizer = make(made.weights);
    const step = wrap(() => {
      made.loss().backward();
      optimizer.step();
      optimizer.zeroGrad();
      return undefined;
    });
    for (let i = 0; i < 4; i++) step();
    return numbersOf(made);
  };
}

const sgd = { lr: 0.1, momentum: 0.9, weightDecay: 0.1 };
/** Each runs a few steps, and gives all numbers that it has seen. */
const CONSUMERS: Readonly<Record<string, (made: Model, wrap: Wrap) => Promise<number[]>>> = {
  ...Object.fromEntries(
    [1, 2, 3, Number.POSITIVE_INFINITY].map((normType) => [
      `clipGradNorm by ${normType}`,
      changedBy((weights) => clipGradNorm(weights, 0.7, { normType })),
    ]),
  ),
  clipGradNormEach: changedBy((weights) => void clipGradNormEach(weights, 0.7)),
  "clipGradValue of accumulated gradients": changedBy((weights) => void clipGradValue(weights, 1.75), 3),
  SGD: steppedBy((weights) => new SGD(weights, sgd)),
  "SGD, clipped by norm": steppedBy((weights) => new SGD(weights, { ...sgd, clip: { norm: 0.7 } })),
  "SGD, clipped by value": steppedBy((weights) => new SGD(weights, { ...sgd, clip: { value: 0.4 } })),
  AdamW: steppedBy((weights) => new AdamW(weights, { lr: 0.1 })),
  "AdamW, clipped by norm and value": steppedBy((weights) => new AdamW(weights, { lr: 0.1, clip: { norm: 1, value: 0.4 } })),
  "zeroGrad in place, and steps after it": async (made) => {
    const optimizer = new SGD(made.weights, { lr: 0.1, clip: { norm: 0.5 } });
    for (let i = 0; i < 3; i++) {
      made.loss().backward();
      optimizer.step();
      optimizer.zeroGrad({ setToNull: false });
      optimizer.step();
    }
    return await numbersOf(made, clipGradNorm(made.weights, 1));
  },
};

await eachDevice((device) => {
  const batches = Object.entries(BATCHES);
  describe.each(device.name === "js" ? batches : sample(batches, 3))("%s", (_, indices) => {
    it.each(Object.entries(CONSUMERS))("%s", async (_, consume) => {
      const eager: Wrap = (step) => () => tidy(step);
      const dense = await consume(model(device, indices, false), eager);
      for (const wrap of [eager, compile])
        expect(await consume(model(device, indices, true), wrap)).toAgreeWith(dense, { absolute: 1e-6, relative: 1e-6 });
    });

    it("a scaler skips for no infinity of the padding, and for each other one", async () => {
      for (const sparse of [true, false]) {
        const made = model(device, indices, sparse, Number.POSITIVE_INFINITY);
        const optimizer = new SGD([made.weights[0]!], { lr: 0.1 });
        const scaler = new GradScaler({ initScale: 4 });
        scaler.scale(made.loss()).backward();
        await scaler.step(optimizer);
        await scaler.update();
        expect(await scaler.getScale()).toBe(4);
        expect([...(await made.weights[0]!.data())].every(Number.isFinite)).toBe(true);
      }
    });
  });
});
