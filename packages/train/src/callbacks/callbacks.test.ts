import { AdamW } from "@opt/adam-amsgrad";
import { inspectCheckpoint, memoryFileSystem } from "@opt/checkpoint";
import { ExponentialMovingAverage, Generator, init, type Tensor, tensor } from "@opt/core";
import { Linear } from "@opt/nn";
import { expectCode } from "@opt/testkit";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { summariesIn } from "../../testing/event-files";
import { fit } from "../fit";
import type { Callback, FitState } from "../fit/events";
import { checkpoints } from "./checkpoints";
import { csv } from "./csv";
import { earlyStopping } from "./early-stopping";
import { duration, shortNumber } from "./format";
import { logger } from "./logger";
import { progress } from "./progress";
import { tensorBoard } from "./tensor-board";

beforeEach(() => init("js"));

type Batch = [Tensor, Tensor];

/** A run whose losses are those given: of epoch 1, 2, ... Weights grow by one in each step. */
async function run(losses: readonly number[], callbacks: readonly Callback[], ofOptimizer: object = {}) {
  const model = new Linear(1, 1, { bias: false, generator: new Generator(1) });
  const adamW = new AdamW(model.namedParameters(), { lr: 1, weightDecay: 0, eps: 0 });
  const optimizer = Object.assign(adamW, ofOptimizer);
  model.loadStateDict({ weight: tensor([[0]]) });
  const ema = new ExponentialMovingAverage(model.namedParameters(), { decay: 0.5 });
  let epoch = 0;
  const data = () => {
    const loss = losses[epoch++]!;
    return [loss, loss].map((each): Batch => [tensor([each]), tensor([[-1]])]);
  };
  // The gradient is -1, the loss what the data say.
  const forward = ([loss, x]: Batch) => {
    const output = model.forward(x).sum();
    return output.sub(output.detach()).add(loss.sum());
  };
  const history = await fit(model, { data, forward, optimizer, ema, epochs: losses.length, callbacks: [...callbacks] });
  const average = ema.averaged(() => model.weight.dataSync()[0]!);
  const { step } = optimizer.stateDict().state.weight!;
  return { history, weight: model.weight.dataSync()[0]!, average, step };
}

describe("earlyStopping", () => {
  it.each<[string, number[], object, number, number]>([
    [
      "ends after `patience` epochs without a better one, with the weights of the best",
      [3, 2, 2.5, 2.25, 1],
      { patience: 2 },
      4,
      4,
    ],
    ["counts anew after a better one", [3, 2, 2.5, 1, 2], { patience: 2 }, 5, 8],
    ["wants minDelta", [3, 2.9, 2.8, 2.7], { patience: 2, minDelta: 0.5 }, 3, 2],
    ["takes NaN for no better", [Number.NaN, 3, Number.NaN, Number.NaN], { patience: 2 }, 4, 4],
    ["may look for higher numbers", [1, 2, 1, 1], { patience: 2, mode: "max" }, 4, 4],
    ["wants minDelta of higher numbers", [1, 1.1, 1.2, 1.3], { patience: 2, mode: "max", minDelta: 0.5 }, 3, 2],
    ["may leave the last weights", [1, 2, 3], { patience: 2, restoreBest: false }, 3, 6],
  ])("%s", async (_, losses, options, epochs, weight) => {
    const result = await run(losses, [earlyStopping({ monitor: "loss", ...options })]);
    expect(result.history.epochs.length).toBe(epochs);
    expect(result.weight).toBeCloseTo(weight, 5);
  });

  it.each<[string, number[], object, RegExp | undefined]>([
    [
      "where it stopped, what was best, and that its weights are back",
      [3, 2, 2.5, 2.25, 1],
      { patience: 2 },
      /^\[earlyStopping\] stopped after epoch 4: loss was best in epoch 2, 2\. The model has the weights of that epoch\.\n$/,
    ],
    [
      "that the last weights stay",
      [1, 2, 3],
      { patience: 2, restoreBest: false },
      /stopped after epoch 3: loss was best in epoch 1, 1\. The model keeps its last weights\./,
    ],
    ["that nothing was a number", [Number.NaN, Number.NaN], { patience: 2 }, /epoch 2: loss was never a number\./],
    ["whose weights it restores without a stop", [2, 1, 3], {}, /^\[earlyStopping\] loss was best in epoch 2, 1\. The/],
    ["nothing where it has done nothing", [3, 2, 1], {}, undefined],
  ])("says %s", async (_, losses, options, line) => {
    vi.spyOn(console, "warn").mockReturnValue(); // of NaN
    const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    await run(losses, [earlyStopping({ monitor: "loss", ...options })]);
    const lines = write.mock.calls.map(([text]) => text);
    vi.restoreAllMocks();
    expect(lines).toEqual(line === undefined ? [] : [expect.stringMatching(line)]);
  });

  it("begins anew in each run", async () => {
    const callbacks = [earlyStopping({ monitor: "loss", patience: 2 })];
    for (const best of [1, 11]) {
      const { history, weight } = await run([best + 2, best, best + 1, best + 2, best], callbacks);
      expect([history.epochs.length, weight]).toEqual([4, 4]);
    }
  });

  it("restores the averages of the best epoch, too", async () => {
    const { average } = await run([3, 2, 2.5, 2.25], [earlyStopping({ monitor: "loss", patience: 2 })]);
    expect(average).toBeCloseTo(3.125, 5); // of 1, 2, 3, 4
  });

  it.each([
    ["restores the state of an optimizer that has other weights for evaluation, too", { train() {}, eval() {} }, 4],
    ["leaves that of others", {}, 8],
  ])("%s", async (_, ofOptimizer, steps) => {
    const { step } = await run([3, 2, 2.5, 2.25], [earlyStopping({ monitor: "loss", patience: 2 })], ofOptimizer);
    expect(step).toBe(steps);
  });

  it("names what it cannot find", async () => {
    const onEpochBegin = vi.fn();
    const missing = run([1], [earlyStopping(), { onEpochBegin }]);
    await expect(missing).rejects.toThrow(/monitor must be a number of each epoch, got "val_loss" without validation/);
    expect(onEpochBegin).not.toHaveBeenCalled();
    await expect(run([1], [earlyStopping({ monitor: "f2" })])).rejects.toThrow(/got "f2" among \["loss"/);
  });
});

it("csv writes all epochs", async () => {
  const fileSystem = memoryFileSystem();
  const { history } = await run([2, 1], [csv("runs/a.csv", { fileSystem })]);
  const [a, b] = history.epochs.map(({ seconds }) => seconds);
  expect(await (await fileSystem.blob("runs/a.csv")).text()).toBe(`epoch,loss,lr,seconds\n1,2,1,${a}\n2,1,1,${b}\n`);
});

it("csv has a column for each name that any epoch has", async () => {
  const fileSystem = memoryFileSystem();
  const history = { epochs: [{ loss: 2 }, { loss: 1, val_loss: 3 }, { loss: 4 }] };
  await csv("a.csv", { fileSystem }).onEpochEnd!({ history } as never, {} as never);
  expect(await (await fileSystem.blob("a.csv")).text()).toBe("epoch,loss,val_loss\n1,2,\n2,1,3\n3,4,\n");
});

it("logger gets steps and epochs", async () => {
  const seen: unknown[] = [];
  await run([2, 1], [logger(({ seconds: _, ...record }) => seen.push(record), { every: 2 })]);
  expect(seen).toEqual([
    { epoch: 0, step: 2, loss: 2, lr: 1 },
    { epoch: 1, step: 2, loss: 2, lr: 1 },
    { epoch: 1, step: 4, loss: 1, lr: 1 },
    { epoch: 2, step: 4, loss: 1, lr: 1 },
  ]);
});

it("logger counts steps within an epoch", async () => {
  const seen: number[] = [];
  await run([2, 1, 1], [logger(({ step }) => seen.push(step), { every: 3 })]); // two steps an epoch
  expect(seen).toEqual([2, 4, 6]);
});

describe("progress", () => {
  it.each([
    [
      "a terminal's line is drawn again, and stays at the end of an epoch",
      true,
      ["\r\u001b[Kepoch 1/1  loss 2.500  0 s\n", "\r\u001b[K"],
    ],
    ["a log gets a line an epoch", false, ["epoch 1/1  loss 2.500  0 s\n"]],
  ])("%s", async (_, isTTY, lines) => {
    const written: string[] = [];
    const clock = vi.spyOn(performance, "now").mockReturnValue(0);
    await run([2.5], [progress({ stream: { isTTY, write: (text) => written.push(text) } })]);
    clock.mockRestore();
    expect(written).toEqual(lines);
  });

  /** What a terminal shows after two seconds of an epoch. */
  function drawn(samples: number, stepsPerEpoch: number | undefined, columns?: number, before = 0) {
    const written: string[] = [];
    const clock = vi.spyOn(performance, "now").mockReturnValue(0);
    const callback = progress({
      stream: { isTTY: true, ...(columns && { columns }), write: (text) => written.push(text) },
    });
    const state = { epoch: 0, epochs: 2, epochStep: 5, stepsPerEpoch, samples: before, logs: { loss: 0.12345 } };
    callback.onTrainBegin!(state as unknown as FitState, undefined as never);
    callback.onEpochBegin!(state as unknown as FitState, undefined as never);
    clock.mockReturnValue(2000);
    callback.onStepEnd!({ ...state, samples } as unknown as FitState, undefined as never);
    clock.mockRestore();
    return written.join().replace("\r\u001b[K", "");
  }

  it("shows means, rate and what is left", () => {
    expect(drawn(100, 10)).toMatch(/^━{12}─{12} epoch 1\/2 {2}5\/10 {2}loss 0\.1235 {2}50.0 \/s {2}2 s left$/);
    expect(drawn(100, undefined)).toMatch(/^epoch 1\/2 {2}5 {2}loss 0\.1235 {2}50.0 \/s$/);
  });

  it("counts the rate of an epoch that was resumed from there", () => {
    expect(drawn(150, 10, undefined, 50)).toMatch(/ {2}50\.0 \/s {2}3 s left$/);
  });

  it("fits any terminal, with its last column left free", () => {
    const whole = drawn(100, 10, 1000);
    for (let columns = 1; columns < 130; columns++) expect(drawn(100, 10, columns)).toBe(whole.slice(0, columns - 1));
  });

  it.each([
    [1, "0.500 /s"],
    [1998, "999 /s"],
    [1999, "1.0 k/s"],
    [10_000, "5.0 k/s"],
    [2_469_000, "1234.5 k/s"],
  ])("%d samples in two seconds are %s", (samples, rate) => {
    expect(drawn(samples, undefined).split("  ").at(-1)).toBe(rate);
  });
});

it.each([
  [0.123456, "0.1235"],
  [12.34567, "12.35"],
  [3, "3"],
  [0.0000123, "1.23e-5"],
  [Number.NaN, "NaN"],
  [12345678.5, "1.23e+7"],
])("%d is written %s", (value, text) => expect(shortNumber(value)).toBe(text));

it.each([
  [7.2, "7 s"],
  [125, "2:05"],
  [3725, "1:02:05"],
])("%d seconds are %s", (seconds, text) => expect(duration(seconds)).toBe(text));

it.each<[string, () => unknown]>([
  ["patience", () => earlyStopping({ patience: 0 })],
  ["mode", () => earlyStopping({ mode: "least" as never })],
  ["minDelta", () => earlyStopping({ minDelta: -1 })],
  ["a path", () => csv(undefined as never)],
  ["a function", () => logger("x" as never)],
  ["every", () => logger(() => {}, { every: 0 })],
  ["an option", () => progress({ streams: {} } as never)],
])("rejects wrong arguments: %s", (_, make) => expectCode("BAD_ARGUMENT", make));

it("progress adds its bar to the element of a page that it is given", async () => {
  const made: { readonly nodes: unknown[]; value?: number; textContent?: string }[] = [];
  const createElement = () => {
    const nodes: unknown[] = [];
    const element = { nodes, append: (...given: unknown[]) => nodes.push(...given) };
    made.push(element);
    return element;
  };
  const [body, element] = [createElement(), createElement()];
  vi.stubGlobal("document", { createElement, body });
  try {
    await run([2, 1], [progress({ element })]);
  } finally {
    vi.unstubAllGlobals();
  }
  const [bar, label, box] = made.slice(2);
  expect([body.nodes, element.nodes, box!.nodes]).toEqual([[], [box], [bar, label]]);
  expect([bar!.value, label!.textContent]).toEqual([1, expect.stringContaining("epoch 2/2")]);
});

it.each([
  ["loss", [3, 1, 2, 4]],
  ["score", [1, 4, 2, 0]], // higher is better
])("checkpoints keeps the best by %s", async (monitor, losses) => {
  const fileSystem = memoryFileSystem();
  const scores: Callback = {
    onEpochEnd: ({ history }) => void Object.assign(history.epochs.at(-1)!, { score: history.epochs.at(-1)!.loss }),
  };
  await run(losses, [scores, checkpoints("run", { monitor, keep: { last: 1, best: 1 }, fileSystem })]);
  const { steps } = await inspectCheckpoint("run", { fileSystem });
  expect(steps).toEqual([4, 8]); // two steps an epoch: the second, and the last
});

it("tensorBoard writes each number under its name into the file system that it is given", async () => {
  const fileSystem = memoryFileSystem();
  await run([2, 1], [tensorBoard("board", { histograms: true, fileSystem })]);
  const [file, ...others] = await fileSystem.list("board");
  expect([file!.name, others]).toEqual([expect.stringMatching(/^events\.out\.tfevents/), []]);
  const all = await summariesIn("board", fileSystem);
  const rows = (tag: string) => all.filter((each) => each.tag === tag).map(({ step, value }) => [step, value]);
  expect([...new Set(all.map(({ tag }) => tag))].map((tag) => [tag, ...rows(tag)])).toEqual([
    ["train/loss", [1, 2], [2, 2], [3, 1], [4, 1]],
    ["train/lr", [1, 1], [2, 1], [3, 1], [4, 1]],
    ["epoch/loss", [2, 2], [4, 1]],
    ["epoch/lr", [2, 1], [4, 1]],
    ["epoch/seconds", [2, expect.any(Number)], [4, expect.any(Number)]],
    ["weights/weight", [2, expect.any(String)], [4, expect.any(String)]],
  ]);
});
