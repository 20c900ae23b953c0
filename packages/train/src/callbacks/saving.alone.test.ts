// What a run saves leaves no memory behind, and a run over a frozen base need not save it.
import "@opt/kernels-cpu";
import { setTimeout } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { AdamW } from "@opt/adam-amsgrad";
import { loadCheckpoint, type MemoryFileSystem, memoryFileSystem, saveCheckpoint } from "@opt/checkpoint";
import { ExponentialMovingAverage, Generator, init, listDevices, randn, type Tensor, tensor } from "@opt/core";
import { enableQ8 } from "@opt/kernels-wasm";
import { BatchNorm1d, crossEntropy, Linear, Sequential } from "@opt/nn";
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { fit } from "../fit";
import type { Callback, FitState } from "../fit/events";
import { checkpoints } from "./checkpoints";
import { earlyStopping } from "./early-stopping";

enableQ8();
setFlagsFromString("--expose-gc");
const devices = (await listDevices()).filter(({ name }) => ["js", "wasm", "cpu"].includes(name));

const batches = () =>
  Array.from({ length: 4 }, (_, i): [Tensor, Tensor] => [
    randn([8, 6], { generator: new Generator(i) }),
    tensor(Int32Array.from({ length: 8 }, (_, k) => (k + i) % 3)),
  ]);

/** Saves each step by another thread, and waits only until it is copied. */
const asynchronously = (fileSystem: MemoryFileSystem): Callback => ({
  onStepEnd: async (state) =>
    saveCheckpoint("other", await state.contents(), { async: true, keep: 1, fileSystem }).copied,
});

describe.each(devices)("on $name", ({ name, available, reason }) => {
  it.each(["f32", "q8"] as const)(
    "saves and copies of the best weights leave no memory, state in %s",
    async (stateDType) => {
      if (!available) expect.fail(reason);
      const device = await init(name);
      runInNewContext("gc")();
      await setTimeout(); // what the test before left is gone
      const fileSystem = memoryFileSystem();
      const model = new Sequential(new Linear(6, 800), new BatchNorm1d(800), new Linear(800, 3));
      const memory: { readonly tensors: number; readonly bytes: number }[] = [];
      await fit(model, {
        ...{ data: batches(), loss: crossEntropy, epochs: 5 },
        optimizer: new AdamW(model.namedParameters(), { lr: 0.01, stateDType }),
        ema: new ExponentialMovingAverage(model.namedParameters()),
        callbacks: [
          { onEpochEnd: () => void memory.push(device.memory()) },
          earlyStopping({ monitor: "loss", patience: 9 }),
          checkpoints("run", { every: 2, fileSystem }),
          asynchronously(fileSystem),
        ],
      });
      // The garbage collector may still find what ran before.
      for (const [i, now] of memory.slice(2).entries()) {
        expect(now.tensors, `epoch ${i + 3}`).toBeLessThanOrEqual(memory[i + 1]!.tensors);
        expect(now.bytes, `epoch ${i + 3}`).toBeLessThanOrEqual(memory[i + 1]!.bytes);
      }
    },
  );
});

/** A frozen base with statistics, and a head that trains. */
function overBase({ seed = 1, epochs = 3, trainable = true, fileSystem = memoryFileSystem() }) {
  const generator = new Generator(seed);
  const contents: string[][] = [];
  const base = new Sequential(new Linear(6, 5, { generator }), new BatchNorm1d(5)).freeze();
  const model = new Sequential(base, new Linear(5, 3, { generator: new Generator(2) }));
  const run = (resume = true) =>
    fit(model, {
      ...{ data: batches(), loss: crossEntropy, epochs, resume, validation: batches() },
      optimizer: new AdamW(model.namedParameters(), { lr: 0.05 }),
      ema: new ExponentialMovingAverage(model.namedParameters({ trainable: true })),
      callbacks: [
        checkpoints("run", { trainable, fileSystem }),
        { onEpochEnd: async (state) => void contents.push(Object.keys((await state.contents({ trainable })).tensors)) },
      ],
    });
  return { model, run, fileSystem, contents };
}
const wordsOf = (run: ReturnType<typeof overBase>) => run.model.namedTensors().map(([, x]) => [...x.dataSync()]);
const savedBy = async ({ fileSystem }: ReturnType<typeof overBase>) =>
  Object.keys((await loadCheckpoint("run", { fileSystem })).tensors).filter((name) => /^\d/.test(name));

it("trainable: true leaves out the base, and goes on over the same one alone", async () => {
  await init("js");
  const whole = overBase({});
  await whole.run();
  const begun = overBase({ epochs: 1 });
  await begun.run();
  const statistics = ["0.1.num_batches_tracked", "0.1.running_mean", "0.1.running_var"];
  const trained = ["1.bias", "1.bias.exp_avg", "1.bias.exp_avg_sq", "1.weight", "1.weight.exp_avg"];
  expect((await savedBy(begun)).sort()).toEqual([...statistics, ...trained, "1.weight.exp_avg_sq"]);
  const { fileSystem } = begun;
  expect(begun.contents.flat().filter((name) => /^0\.0/.test(name))).toEqual([]);
  await expectCode("BAD_STATE", () => overBase({ fileSystem, seed: 9 }).run());
  await expect(overBase({ fileSystem, seed: 9 }).run()).rejects.toThrow("other numbers in 0.0.weight");
  const rest = overBase({ fileSystem });
  await rest.run();
  expect(wordsOf(rest)).toEqual(wordsOf(whole));
  expect(await savedBy(rest)).toEqual(await savedBy(begun));
});

it("trainable contents are for callbacks that say so at the beginning", async () => {
  await init("js");
  const model = new Sequential(new Linear(6, 3));
  const asked = { onEpochEnd: (state: FitState) => state.contents({ trainable: true }).then(() => undefined) };
  const optimizer = new AdamW(model.namedParameters());
  await expectCode("BAD_STATE", () =>
    fit(model, { data: batches(), loss: crossEntropy, epochs: 1, optimizer, callbacks: [asked] }),
  );
});

it("a base that changes in the run, or that a checkpoint brought, is saved", async () => {
  await init("js");
  const begun = overBase({ epochs: 1, seed: 9, trainable: false });
  await begun.run();
  const { fileSystem } = begun;
  const rest = overBase({ epochs: 2, fileSystem });
  await rest.run();
  expect(await savedBy(rest)).toEqual(await savedBy(begun));
});
