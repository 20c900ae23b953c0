/** Schedules in `fit`: of other options than the lr, and a plateau by epochs after a warm-up by steps. */
import { AdamW } from "@opt/adam-amsgrad";
import { memoryFileSystem } from "@opt/checkpoint";
import { Generator, init, noGrad, type Tensor, tensor } from "@opt/core";
import {
  ChainedScheduler,
  CosineAnnealingLR,
  LinearLR,
  type LRScheduler,
  ReduceLROnPlateau,
  SequentialLR,
} from "@opt/core/schedules";
import { Linear, mseLoss } from "@opt/nn";
import { ShardedOptimizer } from "@opt/parallel";
import { beforeEach, describe, expect, it } from "vitest";
import { memoryRanks } from "../../../parallel/testing/memory-ranks";
import { checkpoints } from "../callbacks/checkpoints";
import { fit } from "../fit";
import type { FitOptions } from "./options";

beforeEach(() => init("js"));

type Batch = [Tensor, Tensor];
const EPOCHS = 6;
const values = [0.5, -1, 2, 0.25, 1.5, -0.75];
const data = () => values.map((x): Batch => [tensor([[x, 1]]), tensor([[3 * x - 1]])]);

const begin = (scheduleOf: (o: AdamW) => LRScheduler) => {
  const model = new Linear(2, 1, { generator: new Generator(1) });
  const optimizer = new AdamW(model.namedParameters(), { lr: 0.1, weightDecay: 0.5 });
  return { model, optimizer, schedule: scheduleOf(optimizer) };
};
type Begun = ReturnType<typeof begin>;

const rateAndDecay = (o: AdamW) =>
  new ChainedScheduler([
    new LinearLR(o, { startFactor: 0.5, totalIters: 5 }),
    new CosineAnnealingLR(o, { option: "weightDecay", tMax: 20, etaMin: 0.1 }),
  ]);

const WARM_UP = 8; // steps: one epoch and a third
const warmUpAndPlateau = (o: AdamW) =>
  new SequentialLR(o, {
    schedulers: [
      new LinearLR(o, { startFactor: 0.125, totalIters: WARM_UP }),
      new ReduceLROnPlateau(o, { patience: 0, threshold: 0.5 }),
    ],
    milestones: [WARM_UP],
  });

const stateOf = ({ model, optimizer, schedule }: Begun) => ({
  weights: model.parameters().map((each) => [...each.dataSync()]),
  options: optimizer.groups.map(({ lr, weightDecay }) => [lr, weightDecay]),
  schedule: schedule.stateDict(),
});

/** The loop by hand. Rates are those with which the epochs end. */
function byHand(scheduleOf: (o: AdamW) => LRScheduler, every: "step" | "epoch" = "step") {
  const run = begin(scheduleOf);
  const { model, optimizer, schedule } = run;
  const rates: number[] = [];
  for (let epoch = 0; epoch < EPOCHS; epoch++) {
    for (const [x, y] of data()) {
      mseLoss(model.forward(x), y).backward();
      optimizer.step();
      optimizer.zeroGrad();
      if (every === "step") schedule.step();
    }
    const losses = noGrad(() => data().map(([x, y]) => mseLoss(model.forward(x), y).dataSync()[0]!));
    const metric = losses.reduce((mean, loss, i) => mean + (loss - mean) / (i + 1), 0);
    if (every === "step") schedule.observe(metric);
    else schedule.step(metric);
    rates.push(optimizer.groups[0]!.lr);
  }
  return { ...stateOf(run), rates };
}

async function byFit(run: Begun, extras: Partial<FitOptions<Batch>> = {}) {
  const { model, ...parts } = run;
  const options = {
    ...parts,
    data: data(),
    validation: data(),
    loss: mseLoss,
    epochs: EPOCHS,
    callbacks: [],
    ...extras,
  };
  const { epochs } = await fit(model, options);
  return { ...stateOf(run), rates: epochs.map(({ lr }) => lr) };
}

describe.each([
  ["the lr and the weight decay", rateAndDecay],
  ["a warm-up by steps, then a plateau by epochs", warmUpAndPlateau],
])("%s", (_, scheduleOf) => {
  it("change the options more than once", () => {
    const first = begin(scheduleOf).optimizer.groups.map(({ lr, weightDecay }) => [lr, weightDecay]);
    const { rates, options } = byHand(scheduleOf);
    expect(options).not.toEqual(first);
    expect(new Set([first[0]![0], ...rates]).size).toBeGreaterThan(1);
  });

  it.each([true, false])("are those of the loop by hand: compiled %s", async (compile) => {
    const expected = byHand(scheduleOf);
    expect(await byFit(begin(scheduleOf), { compile })).toEqual(expected);
  });

  it("go on where the run was stopped, inside an epoch", async () => {
    const expected = byHand(scheduleOf);
    for (const last of [3, 9, 20]) {
      const fileSystem = memoryFileSystem();
      const controller = new AbortController();
      const callbacks = [
        checkpoints("runs/a", { every: 1, fileSystem }),
        { onStepEnd: ({ step }: { step: number }) => void (step === last && controller.abort()) },
      ];
      await byFit(begin(scheduleOf), { callbacks, signal: controller.signal });
      expect(await byFit(begin(scheduleOf), { callbacks: callbacks.slice(0, 1), resume: true })).toEqual(expected);
    }
  });
});

it("a plateau after a warm-up may go by epochs alone", async () => {
  const inEpochs = (o: AdamW) =>
    new SequentialLR(o, {
      schedulers: [
        new LinearLR(o, { startFactor: 0.5, totalIters: 2 }),
        new ReduceLROnPlateau(o, { patience: 0, threshold: 0.5 }),
      ],
      milestones: [2],
    });
  const expected = byHand(inEpochs, "epoch");
  expect(new Set(expected.rates).size).toBeGreaterThan(2);
  expect(await byFit(begin(inEpochs), { scheduleEvery: "epoch" })).toEqual(expected);
});

it("a divided optimizer follows the schedule of another option", async () => {
  const train = async (communicator: ReturnType<typeof memoryRanks>[number], isDivided: boolean) => {
    const model = new Linear(2, 1, { generator: new Generator(1) });
    const options = { lr: 0.1, weightDecay: 0.5 };
    const optimizer = isDivided
      ? new ShardedOptimizer(AdamW, model.namedParameters(), options, communicator)
      : new AdamW(model.namedParameters(), options);
    const schedule = new CosineAnnealingLR(optimizer, { option: "weightDecay", tMax: 20 });
    await fit(model, { data: data(), loss: mseLoss, optimizer, schedule, communicator, epochs: 2, callbacks: [] });
    return [optimizer.groups[0]!.weightDecay, ...model.parameters().flatMap((each) => [...each.dataSync()])];
  };
  const [whole, divided] = await Promise.all(
    [false, true].map((isDivided) => Promise.all(memoryRanks(2).map((each) => train(each, isDivided)))),
  );
  expect(divided).toEqual(whole);
  expect(whole![0]![0]).toBeLessThan(0.2);
});
