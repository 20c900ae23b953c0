/** `fit` has the bits of the loop that it stands for. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { AdamW } from "@opt/adam-amsgrad";
import { clipGradNorm, init, listDevices, noGrad, parameter, SAM, type Tensor, tensor } from "@opt/core";
import { DataLoader } from "@opt/data";
import { NAdam } from "@opt/nadam";
import { crossEntropy, Linear, type Module, type Sequential } from "@opt/nn";
import { expectCode } from "@opt/testkit";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type Batch, type Begun, begin, dataset, type Extras, optionsOf, ROWS, words } from "../testing/runs";
import { fit } from "./fit";
import { evaluate } from "./fit/evaluate";
import type { Callback, FitState } from "./fit/events";
import { accuracy } from "./metrics/metrics";

/** The loop written by hand, eagerly. Returns the losses. */
async function byHand({ model, optimizer, schedule, loader, ema, scaler }: Begun, extras: Extras, epochs: number) {
  const { clip, accumulate = 1 } = extras;
  const losses: number[] = [];
  /** Batches weigh by their samples; sums of gradients are divided once. */
  let [first, weight] = [0, 0];
  const update = () => {
    if (accumulate > 1) for (const { grad } of model.parameters()) noGrad(() => grad!.set(grad!.div(weight)));
    weight = 0;
    if (clip !== undefined) {
      scaler?.unscale(optimizer);
      clipGradNorm(model.parameters(), clip);
    }
    if (scaler) {
      scaler.step(optimizer);
      scaler.update();
    } else optimizer.step();
    optimizer.zeroGrad();
    ema?.update();
    schedule.step();
  };
  for (let epoch = 0; epoch < epochs; epoch++) {
    let waiting = 0;
    for (const [x, y] of loader as Iterable<Batch>) {
      const loss = crossEntropy((model as Sequential).forward(x), y);
      if (weight === 0) first = x.shape[0]!;
      const part = x.shape[0]! / first;
      weight += part;
      const share = part === 1 ? loss : loss.mul(part);
      (scaler ? scaler.scale(share) : share).backward();
      losses.push(await loss.item());
      if (++waiting < accumulate) continue;
      update();
      waiting = 0;
    }
    if (waiting > 0) update();
  }
  return losses;
}

const devices = (await listDevices()).filter(({ name }) => ["js", "wasm", "cpu"].includes(name));
afterEach(() => init("js"));

describe.each(devices)("on $name", ({ name, available, reason }) => {
  it.for<[string, string, Extras]>([
    ["mlp", "NAdam", {}],
    ["mlp", "AdamW", { clip: 0.1, scaler: true, ema: true }],
    ["mlp", "AdamW", { accumulate: 2, clip: 0.1 }],
    ["cnn", "NAdam", { ema: true, scaler: true }],
    ["cnn", "AdamW", { accumulate: 3, scaler: true }],
  ])("%s with %s and %j: the words of the loop by hand", async ([model, optimizer, extras], { skip }) => {
    if (!available) skip(reason);
    await init(name);
    const optimizerOf = (made: Module) =>
      optimizer === "NAdam"
        ? new NAdam(made.namedParameters(), { lr: 0.02 })
        : new AdamW(made.namedParameters(), { lr: 0.02 });
    const hand = begin(model, optimizerOf, extras);
    const losses = await byHand(hand, extras, 2);
    for (const compiled of name === "js" ? [true, false] : [true]) {
      const ours = begin(model, optimizerOf, extras);
      const history = await fit(ours.model, { ...optionsOf(ours, extras), compile: compiled });
      expect(await words(ours)).toEqual(await words(hand));
      expect(ours.schedule.lastLr).toEqual(hand.schedule.lastLr);
      expect(history.epochs).toHaveLength(2);
      if (!extras.accumulate) expect(history.losses).toEqual(losses);
    }
  });
});

const plain = () => begin("mlp", (model) => new AdamW(model.namedParameters(), { lr: 0.02 }), {});

it("measures loss and metrics over all samples, also in validation, and leaves modes as they were", async () => {
  const run = plain();
  const validation = new DataLoader(dataset([6], 9), { batchSize: 10 });
  const options = {
    ...optionsOf(run, {}),
    epochs: 2,
    metrics: [accuracy()],
    validation: validation as Iterable<Batch>,
  };
  const { epochs, losses } = await fit(run.model, options);
  const [a, b, c] = losses.slice(0, 3) as [number, number, number];
  expect(epochs[0]!.loss).toBeCloseTo((16 * a + 16 * b + 12 * c) / ROWS, 12);
  expect(run.model.training).toBe(true);
  run.model.eval();
  let right = 0;
  let sum = 0;
  for (const [x, y] of validation as Iterable<Batch>) {
    const output = noGrad(() => (run.model as Sequential).forward(x));
    right += output.argmax(-1).eq(y).to("f32").sum().dataSync()[0]!;
    sum += crossEntropy(output, y).dataSync()[0]! * y.size;
  }
  expect(epochs[1]!.val_accuracy).toBe(right / ROWS);
  expect(epochs[1]!.val_loss).toBeCloseTo(sum / ROWS, 6);
  expect(Object.keys(epochs[1]!)).toEqual(["loss", "accuracy", "val_loss", "val_accuracy", "lr", "seconds"]);
});

it("tells its events in order, to callbacks and to readers, who hold it up", async () => {
  const run = plain();
  const seen: string[] = [];
  const callback = { onStepEnd: () => seen.push("callback") };
  const running = fit(run.model, { ...optionsOf(run, {}), epochs: 1, callbacks: [callback] });
  for await (const { type, state } of running) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    seen.push(`${type} ${state.step}`);
  }
  expect(seen).toEqual([
    ...["trainBegin 0", "epochBegin 0"],
    ...[0, 1, 2].flatMap((step) => [`stepBegin ${step}`, "callback", `stepEnd ${step + 1}`]),
    ...["epochEnd 3", "trainEnd 3"],
  ]);
  expect((await running).epochs).toHaveLength(1);
});

describe("ends after the step", () => {
  it("of a signal", async () => {
    const run = plain();
    const controller = new AbortController();
    const onStepEnd = ({ step }: { step: number }) => step === 4 && controller.abort();
    const history = await fit(run.model, {
      ...optionsOf(run, {}),
      signal: controller.signal,
      callbacks: [{ onStepEnd }],
    });
    expect([history.losses.length, history.epochs.length]).toEqual([4, 1]);
  });

  it("in which a timer aborts", async () => {
    const run = plain();
    const controller = new AbortController();
    setTimeout(() => controller.abort());
    await fit(run.model, { ...optionsOf(run, {}), epochs: 1_000_000, signal: controller.signal });
    expect(controller.signal.aborted).toBe(true);
  });

  it("that a reader breaks off", async () => {
    const run = plain();
    const running = fit(run.model, optionsOf(run, {}));
    for await (const { type, state } of running) if (type === "stepEnd" && state.step === 2) break;
    expect((await running).losses).toHaveLength(2);
  });
});

it("ends all callbacks after an error, and throws the first one", async () => {
  const run = plain();
  const ended: unknown[] = [];
  const breaks = (when: string) => () => {
    throw new Error(when);
  };
  const callbacks = [
    { onStepEnd: breaks("in a step"), onTrainEnd: breaks("at the end") },
    { onTrainEnd: ({ error }: FitState) => ended.push((error as Error).message) },
  ];
  await expect(fit(run.model, { ...optionsOf(run, {}), callbacks })).rejects.toThrow("in a step");
  expect(ended).toEqual(["in a step"]);
  const last = [{ onTrainEnd: breaks("at the end") }];
  await expect(fit(run.model, { ...optionsOf(run, {}), callbacks: last })).rejects.toThrow("at the end");
});

it("frees everything that it made", async () => {
  const device = await init("js");
  const run = plain();
  await fit(run.model, optionsOf(run, {}));
  const before = device.memory().tensors;
  const again = plain();
  await fit(again.model, {
    ...optionsOf(again, {}),
    metrics: [accuracy()],
    validation: again.loader as Iterable<Batch>,
  });
  again.optimizer.dispose();
  for (const parameter of again.model.parameters()) parameter.dispose();
  expect(device.memory().tensors).toBe(before);
});

it("warns once of a loss that is NaN, and of a step without gradients", async () => {
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  const run = plain();
  const forward = ([x]: Batch) => (run.model as Sequential).forward(x).sum().mul(Number.NaN);
  await fit(run.model, { ...optionsOf(run, {}), loss: undefined, forward });
  expect(warn.mock.calls.flat()).toEqual([
    expect.stringMatching(/^\[fit\] the loss should be a number, got NaN in step 1\./),
  ]);
  warn.mockClear();
  const other = plain();
  const { schedule: _, ...options } = { ...optionsOf(other, {}), epochs: 1 };
  const apart = new Linear(6, 3);
  const elsewhere = ([x, y]: Batch) => crossEntropy(apart.forward(x), y);
  for (const without of [{ optimizer: new AdamW(apart.namedParameters()) }, { loss: undefined, forward: elsewhere }]) {
    await fit(other.model, { ...options, ...without });
    expect(warn.mock.calls.flat()).toEqual([
      expect.stringMatching(/^\[fit\] a step should leave gradients, got none\./),
    ]);
  }
  warn.mockRestore();
});

it.each<[string, object, RegExp]>([
  ["no epochs", { epochs: 0 }, /epochs must be a whole number from 1 on, got 0/],
  ["half a batch", { accumulate: 0.5 }, /accumulate must be a whole number from 1 on, got 0.5/],
  ["no optimizer", { optimizer: {} }, /needs an optimizer/],
  ["a closure", { optimizer: new SAM(new AdamW([parameter([1])])) }, /no closure to give, got a SAM/],
  ["no loss", { loss: undefined }, /needs loss or forward, got neither/],
  ["another schedule", { scheduleEvery: "batch" }, /scheduleEvery must be "step" or "epoch"/],
  ["a callback that is no object", { callbacks: [null] }, /callbacks must be objects, got null/],
  [
    "names of metrics",
    { metrics: ["accuracy"] },
    /a list of metrics, got "accuracy". For example metrics: \[accuracy\(\)\]/,
  ],
  ["metrics that were not made", { metrics: [accuracy] }, /must be a list of metrics, got a function/],
  ["a misspelt event", { callbacks: [{ onEpochend() {} }] }, /there is no event onEpochend\. Use onTrainBegin/],
  ["an unknown option", { epoch: 3 }, /there is no option epoch. Did you mean epochs\?/],
])("rejects %s", (_, wrong, message) => {
  const run = plain();
  const begun = () => fit(run.model, { ...optionsOf(run, {}), ...wrong } as never);
  expectCode("BAD_ARGUMENT", begun);
  expect(begun).toThrow(message);
});

it.each<[string, object, RegExp]>([
  ["data that end for good", { data: [][Symbol.iterator]() }, /must have batches in each epoch, got none in epoch 1/],
  ["data that are no list", { data: 5 }, /data must be iterable, got 5/],
  ["validation without batches", { validation: [] }, /data to measure on must have batches, got none/],
  [
    "an asynchronous loss",
    { loss: async (output: Tensor) => output.sum() },
    /loss must return the loss as a tensor.* without async/,
  ],
  [
    "a loss of its own",
    { loss: undefined, forward: () => {} },
    /forward must return the loss as a tensor, or \{ sum, count \}, got undefined/,
  ],
  ["batches without a target", { data: [1] }, /batches must be \[input, target\], got 1/],
])("rejects %s", async (_, wrong, message) => {
  const run = plain();
  await expect(fit(run.model, { ...optionsOf(run, {}), ...wrong } as never)).rejects.toThrow(message);
});

it.each([
  ["nothing", null],
  ["what has no forward", { modules: () => [] }],
  ["what has no modules", { forward: (x: Tensor) => x }],
  ["ranks without a model", { sync() {} }],
])("rejects %s as a model", (_, model) => {
  expectCode("BAD_ARGUMENT", () => fit(model as never, optionsOf(plain(), {})));
});

it.each([true, false])("clips and clears with an optimizer of some parameters, compiled: %s", async (compile) => {
  const run = plain();
  const head = run.model.namedParameters().slice(-2);
  const optimizer = () => new AdamW(head, { lr: 0.02 });
  const before = await words(run);
  const options = { ...optionsOf(run, {}), ema: undefined, schedule: undefined, compile, clip: { norm: 0.01 } };
  await fit(run.model, { ...options, optimizer: optimizer() } as never);
  const fitted = await words(run);
  expect(run.model.parameters().filter(({ grad }) => grad !== null)).toEqual([]);
  const other = plain();
  const own = other.model.namedParameters().slice(-2);
  const loop = new AdamW(own, { lr: 0.02 });
  for (let epoch = 0; epoch < options.epochs; epoch++)
    for (const [x, y] of other.loader as Iterable<Batch>) {
      crossEntropy((other.model as Sequential).forward(x), y).backward();
      clipGradNorm(
        own.map(([, each]) => each),
        0.01,
      );
      loop.step();
      for (const each of other.model.parameters()) each.grad = null;
    }
  expect(fitted).not.toEqual(before);
  expect(fitted).toEqual(await words(other));
});

it("compiles by default", async () => {
  const run = plain();
  let calls = 0;
  const forward = ([x, y]: Batch) => {
    calls++;
    return crossEntropy((run.model as Sequential).forward(x), y);
  };
  await fit(run.model, { ...optionsOf(run, {}), loss: undefined, forward, epochs: 20 });
  expect(calls).toBeLessThan(20); // of 60 steps
});

/** A run whose loss is weighted: `change` gives the weight another value when the second epoch begins. */
const weighted = (weigh: (loss: Tensor) => Tensor, change: () => void, options: object = {}) => {
  const run = plain();
  const batch = dataset([6], 9).batch(Int32Array.of(0, 1, 2, 3)) as Batch;
  const data = Array<Batch>(20).fill(batch);
  const onEpochBegin = ({ epoch }: { epoch: number }) => epoch === 1 && change();
  const loss = (output: Tensor, target: Tensor) => weigh(crossEntropy(output, target));
  return fit(run.model, { ...optionsOf(run, {}), data, loss, epochs: 2, callbacks: [{ onEpochBegin }], ...options });
};

it("finds a number of the loss that has changed between epochs, and names what follows it", async () => {
  let beta = 1;
  const change = () => {
    beta = 100;
  };
  let steps = 0;
  const counting: Callback = {
    onEpochBegin: ({ epoch }) => epoch === 1 && change(),
    onStepEnd: ({ step }) => {
      steps = step;
    },
  };
  const running = weighted((loss) => loss.mul(beta), change, { callbacks: [counting] });
  await expectCode("CHANGED", () => running);
  await expect(running).rejects.toThrow(/with scalars 100, was 1.*a tensor that you set\(\), or use compile: false/);
  expect(steps).toBe(20); // in the first step of the second epoch
  beta = 1;
  const eager = await weighted((loss) => loss.mul(beta), change, { compile: false });
  const weight = tensor(1);
  const followed = await weighted(
    (loss) => loss.mul(weight),
    () => weight.set(100),
  );
  expect(followed.losses).toEqual(eager.losses);
  expect(followed.losses[20]!).toBeGreaterThan(10 * followed.losses[19]!);
});

it("scheduleEvery says whether a schedule moves by steps or by epochs", async () => {
  const rates = async (scheduleEvery: "step" | "epoch") => {
    const run = plain();
    await fit(run.model, { ...optionsOf(run, {}), epochs: 2, scheduleEvery });
    return run.schedule.lastEpoch;
  };
  expect([await rates("epoch"), await rates("step")]).toEqual([2, 6]);
});

it("evaluate of metrics alone tells no loss", async () => {
  const run = plain();
  const told = await evaluate(run.model, { data: run.loader as Iterable<Batch>, metrics: [accuracy()] });
  expect(Object.keys(told)).toEqual(["accuracy"]);
});
