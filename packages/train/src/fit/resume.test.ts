/** A run that was stopped or killed goes on with the bits of one that was not. */
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { AdamW } from "@opt/adam-amsgrad";
import { checkpointBlob, loadCheckpoint, memoryFileSystem, openSource, saveCheckpoint } from "@opt/checkpoint";
import { combine, Generator, init, Lookahead, type Tensor, tensor } from "@opt/core";
import { NAdam } from "@opt/nadam";
import { Linear, type Module } from "@opt/nn";
import { ShardedOptimizer } from "@opt/parallel";
import { SGD } from "@opt/sgd";
import { expectCode } from "@opt/testkit";
import { bundled } from "@opt/testkit/bundled";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { memoryRanks } from "../../../parallel/testing/memory-ranks";
import { type Batch, begin, dataset, type Extras, optionsOf, words } from "../../testing/runs";
import { checkpoints } from "../callbacks/checkpoints";
import { earlyStopping } from "../callbacks/early-stopping";
import { logger } from "../callbacks/logger";
import { fit } from "../fit";
import { accuracy } from "../metrics/metrics";
import type { Callback } from "./events";

beforeEach(() => init("js"));

const optimizers = {
  AdamW: (model: Module) => new AdamW(model.namedParameters(), { lr: 0.02 }),
  NAdam: (model: Module) => new NAdam(model.namedParameters(), { lr: 0.02 }),
  combined: (model: Module) =>
    combine(model, { matrices: NAdam, rest: SGD }, { matrices: { lr: 0.02 }, rest: { lr: 0.1, momentum: 0.9 } }),
  Lookahead: (model: Module) => new Lookahead(new AdamW(model.namedParameters(), { lr: 0.02 }), { k: 2 }),
};

describe.each<[keyof typeof optimizers, Extras]>([
  ["NAdam", { ema: true, scaler: true, clip: 0.1 }],
  ["AdamW", { accumulate: 2 }],
  ["combined", { ema: true, scaler: true, clip: 0.1 }],
  ["Lookahead", { accumulate: 2 }],
])("%s %j", (optimizer, extras) => {
  const start = () => begin("mlp", optimizers[optimizer], extras);
  type Started = ReturnType<typeof start>;
  const train = (run: Started, callbacks: readonly Callback[], more: object = {}) =>
    fit(run.model, {
      ...optionsOf(run, extras),
      validation: [...Array(2)].map((): Batch => dataset([6], 9).batch(Int32Array.of(0, 1, 2, 3)) as Batch),
      metrics: [accuracy()],
      callbacks,
      ...more,
    });

  const steps = extras.accumulate ? [1, 2, 3] : [1, 3, 4];
  it.each(steps)("stopped after step %d and resumed: the same words and history", async (last) => {
    const whole = start();
    const expected = await train(whole, [earlyStopping({ patience: 1 })]);
    const fileSystem = memoryFileSystem();
    const saving = () => [earlyStopping({ patience: 1 }), checkpoints("runs/a", { every: 1, fileSystem })];
    const first = start();
    const { signal, callback: stop } = stopAt(last);
    await train(first, [...saving(), stop], { signal });
    const second = start();
    const history = await train(second, saving(), { resume: true });
    expect(await words(second)).toEqual(await words(whole));
    expect(history.losses).toEqual(expected.losses);
    const timeless = ({ epochs }: typeof history) => epochs.map(({ seconds: _, ...record }) => record);
    expect(timeless(history)).toEqual(timeless(expected));
  });
});

/** Interrupts a run after a step. */
function stopAt(last: number) {
  const controller = new AbortController();
  const callback: Callback = { onStepEnd: ({ step }) => step === last && controller.abort() };
  return { signal: controller.signal, callback };
}

it("goes on with the divided state of a wrapped optimizer", async () => {
  const start = () => {
    const run = begin("mlp", optimizers.AdamW, {});
    const make = (params: [string, Tensor][]) => new Lookahead(new AdamW(params, { lr: 0.02 }), { k: 2 });
    return { ...run, optimizer: new ShardedOptimizer(make, run.model.namedParameters(), {}, memoryRanks(1)[0]!) };
  };
  const train = ({ optimizer, ...run }: ReturnType<typeof start>, callbacks: readonly Callback[], more: object = {}) =>
    fit(run.model, { ...optionsOf(run as never, {}), optimizer, callbacks, ...more });
  const weights = ({ model }: ReturnType<typeof start>) => model.parameters().map((each) => each.tolist());
  const whole = start();
  await train(whole, []);
  const fileSystem = memoryFileSystem();
  const saving = checkpoints("runs/a", { every: 1, fileSystem });
  const { signal, callback } = stopAt(3);
  await train(start(), [saving, callback], { signal });
  const second = start();
  await train(second, [checkpoints("runs/a", { every: 1, fileSystem })], { resume: true });
  expect(weights(second)).toEqual(weights(whole));
});

const plain = () => begin("mlp", optimizers.AdamW, {});

it("goes on from the state of the generators that it is given", async () => {
  const fileSystem = memoryFileSystem();
  const [first, second, other] = [1, 2, 2].map((seed) => new Generator(seed)) as [Generator, Generator, Generator];
  const train = async (generator: Generator, more: object) => {
    const run = plain();
    await fit(run.model, { ...optionsOf(run, {}), generators: [generator], ...more });
    return generator.nextUint32();
  };
  const drawing: Callback = { onStepEnd: () => void first.nextUint32() };
  const next = await train(first, { callbacks: [drawing, checkpoints("run", { fileSystem })] });
  expect(await train(second, { callbacks: [checkpoints("run", { fileSystem })], resume: true })).toBe(next);
  expect(await train(other, {})).not.toBe(next);
});

type MemoryFileSystem = ReturnType<typeof memoryFileSystem>;

describe("generators of another number of ranks", () => {
  type States = object[];
  /** Draws in each step, where each rank has its own seed or all have one. Returns the states at the begin and at the end. */
  const train = async (
    ranks: number,
    seedOf: (rank: number) => number,
    epochs: number,
    fileSystem: MemoryFileSystem,
  ) => {
    const all = memoryRanks(ranks).map(async (communicator, rank): Promise<States> => {
      const generator = new Generator(seedOf(rank));
      const model = new Linear(2, 1, { generator: new Generator(1) });
      const states: States = [];
      const drawing: Callback = {
        onTrainBegin: () => void states.push(generator.stateDict()),
        onStepEnd: () => void generator.nextUint32(),
      };
      const data = [1, 2, 3].map((x): [Tensor] => [tensor([[x, 1]])]);
      const saving = checkpoints("runs/a", { fileSystem });
      await fit(model, {
        ...{ data, communicator, epochs, generators: [generator], resume: true, callbacks: [drawing, saving] },
        forward: ([x]) => model.forward(x).sum(),
        optimizer: new SGD(model.namedParameters(), { lr: 0.1 }),
      });
      return [...states, generator.stateDict()];
    });
    return Promise.all(all);
  };

  it.each([
    ["more", 4],
    ["fewer", 1],
  ])("go on where they were, and new ranks have draws of their own, the same in each resume: %s", async (_, ranks) => {
    const saved = memoryFileSystem();
    const before = (await train(2, (rank) => 7 + rank, 1, saved)).map((states) => states[1]);
    const resume = async () => (await train(ranks, () => 99, 1, saved)).map(([begun]) => begun);
    const after = await resume();
    expect(after.slice(0, 2)).toEqual(before.slice(0, ranks));
    expect(new Set(after.map((state) => JSON.stringify(state))).size).toBe(ranks);
    expect(await resume()).toEqual(after);
  });

  it("stay alike where all ranks had the same", async () => {
    const saved = memoryFileSystem();
    const [[, before]] = (await train(2, () => 7, 1, saved)) as [States];
    for (const [begun] of await train(3, () => 99, 1, saved)) expect(begun).toEqual(before);
  });
});

it("keeps the newest and the best, tells others of each, and loads as a model", async () => {
  const fileSystem = memoryFileSystem();
  const run = plain();
  const saved: string[] = [];
  const losses = [3, 1, 2, 4];
  const folderOf = (step: number) => `step-${String(step).padStart(8, "0")}`;
  const callbacks: Callback[] = [
    {
      onEpochEnd: ({ history }) =>
        Object.assign(history.epochs.at(-1)!, { val_loss: losses[history.epochs.length - 1] }),
    },
    checkpoints("runs/a", { keep: { last: 1, best: 1 }, fileSystem }),
    { onSave: ({ checkpoint }) => saved.push(checkpoint!) },
  ];
  await fit(run.model, { ...optionsOf(run, {}), epochs: 4, callbacks });
  expect(saved.map((path) => path.split("/").at(-1))).toEqual([3, 6, 9, 12].map(folderOf));
  const folders = (await fileSystem.list("runs/a")).map(({ name }) => name).filter((name) => name.startsWith("step-"));
  expect(folders.sort()).toEqual([6, 12].map(folderOf));
  const { model } = plain();
  await loadCheckpoint("runs/a", { fileSystem, into: model.stateDict() });
  expect(model.parameters().map((x) => [...x.dataSync()])).toEqual(
    run.model.parameters().map((x) => [...x.dataSync()]),
  );
  const source = await openSource("runs/a", { fileSystem });
  const ofModel = [...source.tensors.values()].filter(({ role }) => role === "param").map(({ name }) => name);
  expect(ofModel.sort()).toEqual(Object.keys(model.stateDict()).sort());
});

it("goes on from a file, to the same words; a run that was stopped before its first step loads it alone", async () => {
  const whole = plain();
  await fit(whole.model, optionsOf(whole, {}));
  const [first, loaded, last] = [plain(), plain(), plain()];
  let file = new Blob();
  const { signal, callback } = stopAt(4);
  const filing: Callback = {
    async onTrainEnd(state) {
      file = await checkpointBlob(await state.contents());
    },
  };
  await fit(first.model, { ...optionsOf(first, {}), callbacks: [callback, filing], signal });
  const halted = { resume: file, signal: AbortSignal.abort() };
  expect((await fit(loaded.model, { ...optionsOf(loaded, {}), ...halted })).losses).toHaveLength(4);
  expect(await words(loaded)).toEqual(await words(first));
  await fit(last.model, { ...optionsOf(last, {}), resume: file });
  expect(await words(last)).toEqual(await words(whole));
});

/** Weights grow by one in each of two steps of an epoch. Validation is best at 4: 4, 0, 4, 16, ... */
async function growing(callbacks: readonly Callback[], more: object = {}) {
  const model = new Linear(1, 1, { bias: false });
  model.weight.set([[0]]);
  const batch: Batch = [tensor([[1]]), tensor([[0]])];
  const forward = ([x]: Batch) => {
    const output = model.forward(x).sum();
    return model.training ? output.neg() : output.sub(4).square();
  };
  const optimizer = new SGD(model.namedParameters(), { lr: 1 });
  const options = { data: [batch, batch], validation: [batch], forward, optimizer, epochs: 10, resume: true };
  const { epochs } = await fit(model, { ...options, callbacks, ...more });
  return { losses: epochs.map((epoch) => epoch.val_loss), weight: model.weight.dataSync()[0] };
}

describe("a run that is begun again", () => {
  let fileSystem = memoryFileSystem();
  beforeEach(() => {
    fileSystem = memoryFileSystem();
    vi.spyOn(console, "warn").mockReturnValue();
  });
  afterEach(() => vi.restoreAllMocks());
  const saving = () => checkpoints("runs/a", { fileSystem });

  it("has the best weights, wherever checkpoints stands among the callbacks", async () => {
    const dies: Callback = {
      onEpochBegin({ epoch }) {
        if (epoch === 2) throw new Error("killed");
      },
    };
    const callbacks = () => [saving(), earlyStopping({ patience: 2 })];
    await expect(growing([...callbacks(), dies])).rejects.toThrow("killed");
    expect(await growing(callbacks())).toEqual({ losses: [4, 0, 4, 16], weight: 4 });
  });

  it("finds the states of callbacks by name, and names those without a callback or a state", async () => {
    class Counter implements Callback {
      epochs = 0;
      onEpochEnd = () => this.epochs++;
      stateDict = () => ({ epochs: this.epochs });
      loadStateDict = (state: { epochs: number }) => Object.assign(this, state);
    }
    await growing([new Counter(), new Counter(), earlyStopping({ patience: 2 }), saving()], { epochs: 3 });
    const counters = [new Counter(), new Counter()];
    const moved = [logger(() => {}), saving(), earlyStopping({ patience: 2 }), ...counters];
    expect(await growing(moved)).toEqual({ losses: [4, 0, 4, 16], weight: 4 });
    expect(counters.map(({ epochs }) => epochs)).toEqual([4, 4]);
    expect(console.warn).not.toHaveBeenCalled();
    await growing([saving(), new Counter(), { ...new Counter(), name: "mine" }]);
    expect(vi.mocked(console.warn).mock.calls.flat()).toEqual([
      expect.stringMatching(/the checkpoint must have the state of mine, got none/),
      expect.stringMatching(/the state of earlyStopping in the checkpoint needs its callback, got none/),
      expect.stringMatching(/the state of Counter-2 in the checkpoint needs its callback, got none/),
      expect.stringMatching(/a callback has ended this run/),
    ]);
  });

  it("trains no further once it has stopped, unless it has more patience", async () => {
    const callbacks = (patience: number) => [saving(), earlyStopping({ patience })];
    const stopped = { losses: [4, 0, 4, 16], weight: 4 };
    for (let life = 0; life < 3; life++) expect(await growing(callbacks(2))).toEqual(stopped);
    expect(console.warn).toHaveBeenCalledTimes(2);
    expect(console.warn).toHaveBeenCalledWith(
      expect.stringMatching(/^\[fit\] a callback has ended this run at step 8/),
    );
    expect(await growing(callbacks(3))).toEqual({ losses: [...stopped.losses, 36], weight: 4 });
  });

  it("trains no further once a callback has ended it, in the middle of an epoch", async () => {
    const ends: Callback = {
      onStepEnd(state, control) {
        if (state.step === 3) control.stop = true;
      },
    };
    for (const more of [[ends], []]) expect(await growing([saving(), ...more])).toEqual({ losses: [4], weight: 3 });
    const goesOn: Callback = {
      onTrainBegin(_, control) {
        control.stop = false;
      },
    };
    expect(await growing([saving(), goesOn], { epochs: 2 })).toEqual({ losses: [4, 0], weight: 4 });
  });

  it("does not mix with an older run of its folder", async () => {
    await growing([saving()], { epochs: 3, resume: false });
    const anew = () => growing([saving()], { epochs: 1, resume: false });
    await expectCode("BAD_STATE", anew);
    await expect(anew()).rejects.toThrow(/"runs\/a" must have no later steps, got step 6 where the run is at 0/);
    expect((await growing([saving()], { epochs: 3 })).losses).toHaveLength(3);
  });

  it("goes on where a reader had left it", async () => {
    const run = plain();
    const first = fit(run.model, { ...optionsOf(run, {}), callbacks: [saving()] });
    for await (const { type, state } of first) if (type === "stepEnd" && state.step === 3) break;
    expect((await first).epochs).toHaveLength(1);
    const again = plain();
    const options = { ...optionsOf(again, {}), callbacks: [saving()], resume: true };
    expect((await fit(again.model, options)).losses).toHaveLength(6);
  });
});

it("begins anew where there is no checkpoint yet; a folder that is named must have one", async () => {
  const run = plain();
  const callbacks = [checkpoints("runs/a", { fileSystem: memoryFileSystem() })];
  expect((await fit(run.model, { ...optionsOf(run, {}), callbacks, resume: true })).epochs).toHaveLength(2);
  await expectCode("MISSING", () => fit(run.model, { ...optionsOf(run, {}), resume: "/nowhere/at/all" }));
  await expectCode("BAD_ARGUMENT", () => fit(run.model, { ...optionsOf(run, {}), resume: true }));
});

it.each<[string, (model: Module) => Module, (model: Module) => object, RegExp]>([
  ["model", () => new Linear(6, 3), optimizers.AdamW, /0.weight|weight/],
  [
    "optimizer",
    (model) => model,
    (model) => new SGD(model.namedParameters(), { lr: 1 }),
    /the optimizer must be of the class that was saved, got one without betas/,
  ],
])("names the checkpoint of another %s", async (_, modelOf, optimizerOf, words) => {
  const run = plain();
  const callbacks = [checkpoints("runs/a", { fileSystem: memoryFileSystem() })];
  await fit(run.model, { ...optionsOf(run, {}), callbacks });
  const model = modelOf(plain().model);
  const { schedule: _own, ...options } = optionsOf(run, {});
  const again = { ...options, epochs: 3, optimizer: optimizerOf(model) as never, callbacks, resume: true };
  await expectCode("BAD_STATE", () => fit(model, again));
  await expect(fit(model, again)).rejects.toThrow(/resume must name a checkpoint of this run, got one of "runs\/a"/);
  await expect(fit(model, again)).rejects.toThrow(words);
});

it("rejects a checkpoint that is not of fit", async () => {
  const fileSystem = memoryFileSystem();
  const run = plain();
  await saveCheckpoint("runs/a", { step: 1, tensors: run.model.stateDict() }, { fileSystem });
  const callbacks = [checkpoints("runs/a", { fileSystem })];
  await expectCode("BAD_STATE", () => fit(run.model, { ...optionsOf(run, {}), callbacks, resume: true }));
});

it.each<[string, object]>([
  ["every", { every: 0 }],
  ["last", { keep: { last: 0 } }],
  ["keep", { keep: { newest: 2 } }],
])("rejects wrong arguments: %s", (_, options) => expectCode("BAD_ARGUMENT", () => checkpoints("a", options)));

it("killed by the system in the middle of steps: the same words", async () => {
  const folder = await mkdtemp(join(tmpdir(), "opt-killed-"));
  const [program] = await bundled(fileURLToPath(new URL("../../testing/killed-run.ts", import.meta.url)));
  /** Returns the last line; kills the program when it has told step `last`. */
  const life = (name: string, last?: number) =>
    new Promise<string>((resolve) => {
      const child = spawn(process.execPath, [program, join(folder, name)], { stdio: ["ignore", "pipe", "inherit"] });
      let text = "";
      child.stdout.on("data", (data) => {
        text += data;
        if (last !== undefined && text.split("\n").includes(String(last))) child.kill("SIGKILL");
      });
      child.on("close", () => resolve(text.trim().split("\n").at(-1)!));
    });
  const whole = life("whole");
  for (const last of [5, 14]) await life("killed", last);
  expect(await life("killed")).toBe(await whole);
  expect(await whole).toMatch(/^[0-9a-f]{64}$/);
  await rm(folder, { recursive: true });
});
