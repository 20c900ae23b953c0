/** Whatever puts a model into evaluation mode gives each layer its own mode back, also if it fails. */
import { Generator, init, noGrad, type Tensor, tensor } from "@opt/core";
import { BatchNorm1d, Dropout, Linear, mseLoss, Sequential } from "@opt/nn";
import { SGD } from "@opt/sgd";
import { beforeEach, describe, expect, it } from "vitest";
import { fit } from "./fit";
import { evaluate, predict } from "./fit/evaluate";
import type { Callback } from "./fit/events";
import { findLearningRate } from "./look/find-learning-rate";
import { summary } from "./look/summary";

type Batch = [Tensor, Tensor];

const batchOf = (shift: number): Batch => [
  tensor([
    [shift, 1],
    [2, -shift],
    [0.5, 3],
  ]),
  tensor([[1], [0], [shift]]),
];
let data: Batch[];
beforeEach(async () => {
  await init("js");
  data = [batchOf(1), batchOf(2)];
});

/** A batch norm, frozen as PyTorch's recipes do it, and a dropout among layers that train. */
function begin() {
  const generator = new Generator(1);
  const frozen = new BatchNorm1d(4);
  const dropout = new Dropout(0.5, { generator });
  const inner = new Sequential(new Linear(4, 4, { generator }), new BatchNorm1d(4), dropout);
  const model = new Sequential(new Linear(2, 4, { generator }), frozen, inner, new Linear(4, 1, { generator }));
  frozen.eval();
  return { model, frozen, dropout, inner };
}

const sgd = (model: Sequential) => new SGD(model.namedParameters(), { lr: 0.01 });
const modes = (model: Sequential) => model.modules().map(({ training }) => training);
const broken = () => {
  throw new Error("broken");
};

/** What runs a model, and what it does where the forward fails. */
const runs: readonly [string, (model: Sequential, fails: boolean) => unknown][] = [
  ["evaluate", (model, fails) => evaluate(model, { data, loss: fails ? broken : mseLoss, compile: false })],
  ["evaluate, compiled", (model, fails) => evaluate(model, { data, loss: fails ? broken : mseLoss })],
  ["predict", (model, fails) => predict(model, fails ? () => broken() : data)],
  ["summary", (model, fails) => summary(model, fails ? tensor([[1, 2, 3]]) : data[0]![0])],
  [
    "findLearningRate",
    (model, fails) =>
      findLearningRate(model, { data, loss: fails ? broken : mseLoss, optimizer: sgd(model), steps: 4 }),
  ],
];

/** Modes that a model may be in. */
const cases: readonly [string, (begun: ReturnType<typeof begin>) => void][] = [
  ["a frozen batch norm", () => {}],
  ["a model in evaluation", ({ model }) => model.eval()],
  ["a dropout that draws in evaluation", ({ model, dropout }) => [model.eval(), dropout.train()]],
  ["a part in evaluation with a layer that trains", ({ inner, dropout }) => [inner.eval(), dropout.train()]],
];

describe.each(runs)("%s", (_, run) => {
  it.each(cases)("keeps the modes of %s", async (_, set) => {
    const begun = begin();
    set(begun);
    const before = modes(begun.model);
    await run(begun.model, false);
    expect(modes(begun.model)).toEqual(before);
    await expect((async () => run(begun.model, true))()).rejects.toThrow(/^broken$|^\[Linear\] /);
    expect(modes(begun.model)).toEqual(before);
  });
});

describe("fit", () => {
  const options = (model: Sequential, callbacks: readonly Callback[] = []) => ({
    ...{ data, loss: mseLoss, optimizer: sgd(model), validation: data, epochs: 3, callbacks },
  });

  it("leaves a frozen batch norm alone, in all epochs after a validation", async () => {
    const { model, frozen, inner } = begin();
    const statistics = (layer: unknown) => (layer as BatchNorm1d).running_mean!.tolist();
    const [before, innerBefore] = [statistics(frozen), statistics(inner.modules()[2])];
    const expected = modes(model);
    await fit(model, options(model));
    expect(modes(model)).toEqual(expected);
    expect(statistics(frozen)).toEqual(before);
    expect(statistics(inner.modules()[2])).not.toEqual(innerBefore);
  });

  it("gives each layer its mode back where a callback has left the model in evaluation", async () => {
    const { model } = begin();
    const expected = modes(model);
    const seen: boolean[][] = [];
    const sampling: Callback = {
      onStepBegin: () => seen.push(modes(model)),
      onEvaluate: () => void noGrad(() => model.eval().forward(data[0]![0])),
    };
    await fit(model, options(model, [sampling]));
    expect(seen).toEqual(Array(6).fill(expected));
  });

  it("keeps them where the validation fails, and the optimizer in training", async () => {
    const { model } = begin();
    const expected = modes(model);
    const swaps: string[] = [];
    const note = (name: string) => () => void swaps.push(name);
    const optimizer = Object.assign(sgd(model), { train: note("train"), eval: note("eval") });
    const run = fit(model, { ...options(model), optimizer, validation: () => broken() });
    await expect(run).rejects.toThrow("broken");
    expect(modes(model)).toEqual(expected);
    expect(swaps).toEqual(["train", "eval", "train"]);
  });

  it("trains a model that was in evaluation", async () => {
    const { model } = begin();
    model.eval();
    await fit(model, options(model));
    expect(modes(model).every(Boolean)).toBe(true);
  });
});
