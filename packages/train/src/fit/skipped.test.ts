/** A step that the scaler skips moves no schedule and no average, and callbacks know of it. */

import { memoryFileSystem } from "@opt/checkpoint";
import { compile, ExponentialMovingAverage, GradScaler, init, type Tensor, tensor } from "@opt/core";
import { LinearLR } from "@opt/core/schedules";
import { Linear } from "@opt/nn";
import "@opt/parallel";
import { SGD } from "@opt/sgd";
import { beforeEach, expect, it } from "vitest";
import { memoryRanks } from "../../../parallel/testing/memory-ranks";
import { checkpoints } from "../callbacks/checkpoints";
import { fit } from "../fit";
import type { Callback } from "./events";

beforeEach(() => init("js"));

type Batch = [Tensor];

/** Where gradients overflow once they are scaled. */
const OVERFLOWS = [false, true, false, false, true, true, false, false];

const begin = () => {
  const model = new Linear(1, 1, { bias: false });
  model.weight.set([[0]]);
  const optimizer = new SGD(model.namedParameters(), { lr: 1 });
  const schedule = new LinearLR(optimizer, { startFactor: 1, endFactor: 0.25, totalIters: 12 });
  const ema = new ExponentialMovingAverage(model.namedParameters(), { decay: 0.5 });
  const scaler = new GradScaler({ initScale: 2 ** 16, growthInterval: 1000 });
  return { model, optimizer, schedule, ema, scaler };
};
type Begun = ReturnType<typeof begin>;

const numbersOf = ({ model, schedule, ema }: Begun) => ({
  weight: model.weight.dataSync()[0],
  steps: schedule.lastEpoch,
  rates: schedule.lastLr,
  averaged: ema.stateDict().n_averaged,
  average: (ema.stateDict()["module.weight"] as Tensor).dataSync()[0],
});

/** The loop that skips by hand, without a scaler. */
function byHand(overflows: readonly boolean[]) {
  const run = begin();
  for (const isOverflow of overflows) {
    if (isOverflow) continue;
    run.model
      .forward(tensor([[1]]))
      .sum()
      .backward();
    run.optimizer.step();
    run.optimizer.zeroGrad();
    run.ema.update();
    run.schedule.step();
  }
  return numbersOf(run);
}

const options = ({ model, ...run }: Begun, accumulate = 1) => ({
  ...run,
  data: OVERFLOWS.flatMap((isOverflow): Batch[] => Array(accumulate).fill([tensor([[isOverflow ? 3e37 : 1]])])),
  forward: ([x]: Batch) => model.forward(x).sum(),
  epochs: 1,
  accumulate,
});

it.each([
  [true, 1],
  [false, 1],
  [true, 2],
])("compiled %s, accumulated by %d", async (compile, accumulate) => {
  const run = begin();
  const skipped: boolean[] = [];
  const counts: number[] = [];
  const watching: Callback = {
    onStepEnd({ wasSkipped, skippedSteps, step }) {
      skipped.push(wasSkipped);
      counts.push(step - skippedSteps);
    },
  };
  const { losses } = await fit(run.model, { ...options(run, accumulate), compile, callbacks: [watching] });
  expect(numbersOf(run)).toEqual(byHand(OVERFLOWS));
  expect(skipped).toEqual(OVERFLOWS);
  expect(counts).toEqual([1, 1, 2, 3, 3, 3, 4, 5]);
  expect(losses).toHaveLength(8);
});

it.each([true, false])("a loop by hand asks the scaler: compiled %s", (isCompiled) => {
  const run = begin();
  const { model, optimizer, scaler } = run;
  const body = (x: Tensor) => {
    scaler.scale(model.forward(x).sum()).backward();
    scaler.step(optimizer);
    scaler.update();
    optimizer.zeroGrad();
  };
  const step = isCompiled ? compile(body) : body;
  for (const isOverflow of OVERFLOWS) {
    step(tensor([[isOverflow ? 3e37 : 1]]));
    expect(scaler.stepWasSkipped).toBe(isOverflow);
    if (scaler.stepWasSkipped) continue;
    run.ema.update();
    run.schedule.step();
  }
  expect(numbersOf(run)).toEqual(byHand(OVERFLOWS));
});

it("ranks skip together where one overflows", async () => {
  const expected = byHand(OVERFLOWS);
  const ranks = memoryRanks(2).map(async (communicator, rank) => {
    const model = new Linear(1, 2, { bias: false });
    model.weight.set([[0], [0]]);
    const weights = model.namedParameters();
    const optimizer = new SGD(weights, { lr: 1 });
    const schedule = new LinearLR(optimizer, { startFactor: 1, endFactor: 0.25, totalIters: 12 });
    const ema = new ExponentialMovingAverage(weights, { decay: 0.5 });
    const scaler = new GradScaler({ initScale: 2 ** 16, growthInterval: 1000 });
    const skipped: boolean[] = [];
    const watching: Callback = { onStepEnd: ({ wasSkipped }) => void skipped.push(wasSkipped) };
    const data = OVERFLOWS.map((isOverflow): Batch => [tensor([[isOverflow && rank === 1 ? 3e37 : 1]])]);
    const forward = ([x]: Batch) => model.forward(x).sum();
    const training = { optimizer, schedule, ema, scaler, epochs: 1 };
    await fit(model, { ...training, data, forward, communicator, callbacks: [watching] });
    expect(skipped).toEqual(OVERFLOWS);
    expect([schedule.lastEpoch, schedule.lastLr]).toEqual([expected.steps, expected.rates]);
    const state = ema.stateDict();
    expect(state.n_averaged).toEqual(expected.averaged);
    const own = [weights[0]![1], Object.values(state).find((each) => typeof each === "object") as Tensor];
    return own.map((each) => new Set(each.dataSync()));
  });
  for (const [weight, average] of await Promise.all(ranks)) {
    expect([...weight!]).toEqual([expected.weight]);
    expect([...average!]).toEqual([expected.average]);
  }
});

it("a resumed run goes on counting", async () => {
  const fileSystem = memoryFileSystem();
  const saving = () => checkpoints("runs/a", { every: 1, fileSystem });
  const controller = new AbortController();
  const first = begin();
  const stop: Callback = { onStepEnd: ({ step }) => step === 5 && controller.abort() };
  await fit(first.model, { ...options(first), callbacks: [saving(), stop], signal: controller.signal });
  const second = begin();
  let count = 0;
  const counting: Callback = {
    onStepEnd({ skippedSteps }) {
      count = skippedSteps;
    },
  };
  await fit(second.model, { ...options(second), callbacks: [saving(), counting], resume: true });
  expect(count).toBe(3);
  expect(numbersOf(second)).toEqual(byHand(OVERFLOWS));
});
