/** Divided state against whole state: every bit of it and of the parameters, while training and through checkpoints. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Adafactor } from "@opt/adafactor";
import { AdamW } from "@opt/adam-amsgrad";
import { loadCheckpoint, optimizerState } from "@opt/checkpoint";
import { compile, ExponentialMovingAverage, GradScaler, init, ones, parameter, type Tensor } from "@opt/core";
import { Lamb } from "@opt/lamb";
import { Muon } from "@opt/muon";
import type { Module } from "@opt/nn";
import { describe, expect, it } from "vitest";
import { connect } from "../engine/connect";
import { checkTraining } from "../testing/check-training";
import { runJob } from "../testing/job";
import { bitsOf, makeNet, optimizerOf, type Run } from "../testing/training";
import { ShardedOptimizer } from "./sharded-optimizer";
import "../index";

const IMPORTS = `import { bitsOf, makeNet, optimizerOf, shardedOf, trainOnRanks } from "${new URL("../testing/training.ts", import.meta.url).href}";
import { ShardedOptimizer } from "${new URL("sharded-optimizer.ts", import.meta.url).href}";
import { loadCheckpoint, optimizerState, saveCheckpoint } from "${new URL("../../../checkpoint/src/index.ts", import.meta.url).href}";
import { AdamW } from "${new URL("../../../optimizers/adam-amsgrad/src/index.ts", import.meta.url).href}";
import { NAdam } from "${new URL("../../../optimizers/nadam/src/index.ts", import.meta.url).href}";`;

const RUNS: readonly (readonly [ranks: number, runs: readonly Run[]])[] = [
  [
    2,
    [
      { algorithm: "NAdam", device: "cpu", steps: 20, sharded: true },
      { algorithm: "AdamW", device: "wasm", steps: 10, sharded: true },
      { algorithm: "AdamW", device: "cpu", steps: 10, sharded: true, stochasticRounding: true },
    ],
  ],
  [
    3,
    [
      { algorithm: "AMSGrad", device: "js", steps: 20, sharded: true },
      { algorithm: "AdamW", device: "cpu", steps: 10, sharded: true, clip: { norm: 0.3, value: 0.1 } },
    ],
  ],
];

describe("divided state has the bits of whole state", () => {
  it.each(RUNS)("%d ranks, %o", (ranks, runs) => checkTraining(ranks, runs, { imports: IMPORTS }));
});

const RUN: Run = { algorithm: "NAdam", device: "js", steps: 1 };

it("is saved by its parts on 4 ranks, and goes on on 2 and without division", async () => {
  const folder = mkdtempSync(join(tmpdir(), "opt-sharded-"));
  // Gradients that are equal on all ranks: what counts here is the state.
  const train = `const train = async (model, optimizer, steps) => {
    for (let step = 0; step < steps; step++) {
      for (const x of model.parameters()) x.grad = core.randn(x.shape, { dtype: x.dtype, generator: new core.Generator(step) });
      await optimizer.step();
    }
  };`;
  try {
    const save = await runJob(
      4,
      `${train}
       const model = makeNet();
       const sharded = shardedOf(${JSON.stringify(RUN)}, model, communicator);
       await train(model, sharded, 3);
       const { tensors, values } = await sharded.contents();
       const layout = { mesh: { shape: [4], axes: ["rank"] }, tensors: { "*": "replicate" } };
       await saveCheckpoint(${JSON.stringify(folder)}, { step: 3, tensors: { ...model.stateDict(), ...tensors }, values }, { communicator, layout });
       tell(await bitsOf(model, sharded));`,
      { imports: IMPORTS },
    );
    expect(save.error).toBe("");
    const resume = await runJob(
      2,
      `${train}
       const model = makeNet();
       const sharded = shardedOf(${JSON.stringify(RUN)}, model, communicator);
       const loaded = await loadCheckpoint(${JSON.stringify(folder)});
       const weights = Object.keys(model.stateDict()).map((name) => [name, loaded.tensors[name]]);
       model.loadStateDict(Object.fromEntries(weights));
       sharded.loadStateDict(optimizerState(loaded));
       const before = await bitsOf(model, sharded);
       await train(model, sharded, 2);
       tell([before, await bitsOf(model, sharded)]);`,
      { imports: IMPORTS },
    );
    expect(resume.error).toBe("");
    await init("js");
    const model = makeNet();
    const optimizer = optimizerOf(RUN, model);
    const loaded = await loadCheckpoint(folder);
    const weights = Object.keys(model.stateDict()).map((name) => [name, loaded.tensors[name]!] as const);
    model.loadStateDict(Object.fromEntries(weights));
    optimizer.loadStateDict(optimizerState(loaded));
    const whole = await bitsOf(model, optimizer);
    for (const bits of save.told) expect(bits).toEqual(whole);
    const { Generator, randn } = await import("@opt/core");
    for (let step = 0; step < 2; step++) {
      for (const x of model.parameters()) x.grad = randn(x.shape, { dtype: x.dtype, generator: new Generator(step) });
      optimizer.step();
    }
    const after = await bitsOf(model, optimizer);
    for (const bits of resume.told) expect(bits).toEqual([whole, after]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

it("swaps the weights that are trained and those that are evaluated on all ranks", async () => {
  const run: Run = { algorithm: "ScheduleFreeAdamW", device: "js", steps: 1 };
  const body = (make: string) => `const model = makeNet();
    const optimizer = ${make};
    const bits = [];
    for (let step = 0; step < 6; step++) {
      for (const x of model.parameters()) x.grad = core.randn(x.shape, { dtype: x.dtype, generator: new core.Generator(step) });
      await optimizer.step();
      if (step % 2 === 0) continue;
      await optimizer.eval();
      bits.push(await bitsOf(model, optimizer));
      await optimizer.train();
    }
    tell([...bits, await bitsOf(model, optimizer)]);`;
  const whole = await runJob(1, body(`optimizerOf(${JSON.stringify(run)}, model)`), { imports: IMPORTS });
  const divided = await runJob(3, body(`shardedOf(${JSON.stringify(run)}, model, communicator)`), { imports: IMPORTS });
  expect([whole.error, divided.error]).toEqual(["", ""]);
  expect(whole.told[0]).toHaveLength(4);
  for (const bits of divided.told) expect(bits).toEqual(whole.told[0]);
});

it("has no weights to evaluate of an optimizer that has none", async () => {
  const sharded = new ShardedOptimizer(AdamW, [parameter([1])], {}, await connect());
  await expect(sharded.eval()).rejects.toMatchObject({ code: "UNSUPPORTED" });
});

it("packs state in 8 bits range by range: a quarter of the bytes, near to whole state, and its bits on one rank", async () => {
  const body = `const { size } = communicator;
    const made = (name) => core.parameter(core.randn([300, 200], { generator: new core.Generator(1) }), { name });
    const [divided, whole] = [made("a"), made("a")];
    const sharded = new ShardedOptimizer(AdamW, [divided], { stateDType: "q8" }, communicator);
    const optimizer = new AdamW([whole], { stateDType: "q8" });
    const { device } = divided;
    const bytes = [];
    for (let step = 0; step < 4; step++) {
      for (const each of [divided, whole]) each.grad = core.randn([300, 200], { generator: new core.Generator(step) });
      const before = device.memory().bytes;
      await sharded.step();
      bytes.push(device.memory().bytes - before);
      optimizer.step();
    }
    const [a, b] = [divided.dataSync(), whole.dataSync()];
    const moments = Object.values((await sharded.stateDict()).state)[0];
    tell([bytes[0] / (2 * 300 * 200), Math.max(...a.map((x, i) => Math.abs(x - b[i]))), moments.exp_avg.shape.join()]);`;
  for (const ranks of [1, 3]) {
    const { told, error } = await runJob(ranks, body, { imports: IMPORTS });
    expect(error).toBe("");
    for (const [share, distance, shape] of told as [number, number, string][]) {
      expect(Math.abs(share * ranks - 1)).toBeLessThan(0.05);
      expect(distance).toBeLessThan(ranks === 1 ? Number.MIN_VALUE : 1e-3);
      expect(shape).toBe("300,200");
    }
  }
});

it.each([[9000], [300, 200]])(
  "goes on from packed state of [%i, ...] with the bits of a run that never stopped",
  async (...shape) => {
    const body = `const train = async (sharded, parameter, step) => {
      parameter.grad = core.randn(${JSON.stringify(shape)}, { generator: new core.Generator(step) });
      await sharded.step();
    };
    const made = () => core.parameter(core.randn(${JSON.stringify(shape)}, { generator: new core.Generator(9) }), { name: "a" });
    const [a, b] = [made(), made()];
    const options = { lr: 0.1, stateDType: "q8" };
    const [straight, resumed] = [a, b].map((each) => new ShardedOptimizer(AdamW, [each], options, communicator));
    for (let step = 0; step < 3; step++) await train(straight, a, step);
    core.noGrad(() => b.set(a));
    resumed.loadStateDict(await straight.stateDict());
    for (const [sharded, each] of [[straight, a], [resumed, b]]) await train(sharded, each, 3);
    const others = b.dataSync();
    tell([resumed.groups[0].stateDType, a.dataSync().filter((x, i) => x !== others[i]).length]);`;
    const { told, error } = await runJob(3, body, { imports: IMPORTS });
    expect(error).toBe("");
    expect(told).toEqual(new Array(3).fill(["q8", 0]));
  },
);

it("a rank keeps its part of the state, and names what differs", async () => {
  const body = `const { rank, size } = communicator;
    const weight = core.parameter(core.randn([300, 200], { generator: new core.Generator(1) }));
    const sharded = new ShardedOptimizer(AdamW, [["weight", weight]], {}, communicator);
    weight.grad = core.ones([300, 200]);
    const { device } = weight;
    const before = device.memory().bytes;
    await sharded.step();
    const bytes = device.memory().bytes - before;
    const messages = [];
    const attempt = async (body) => messages.push(await body().then(() => "nothing", (error) => error.message));
    await attempt(() => new ShardedOptimizer(AdamW, [["weight", weight]], { lr: 0.1 + rank }, communicator).ready);
    await attempt(() => new ShardedOptimizer(rank ? AdamW : NAdam, [["weight", weight]], {}, communicator).ready);
    tell([bytes / (2 * 4 * 300 * 200), ...messages]);`;
  const { told, error } = await runJob(3, body, { imports: IMPORTS });
  expect(error).toBe("");
  for (const [share, options, rules] of told as [number, string, string][]) {
    expect(Math.abs(share * 3 - 1)).toBeLessThan(0.05);
    expect(options).toMatch(/"group 0 AdamW \w+ \{"lr":0.1,.*on rank 0 and "group 0 AdamW \w+ \{"lr":1.1,/);
    expect(rules).toMatch(/"group 0 NAdam \w+ .*on rank 0 and "group 0 AdamW \w+ /);
  }
});

/** Done on rank 1 alone before the third step. */
it.each<[string, string, RegExp]>([
  ["another learning rate", "sharded.groups[0].lr = 0.5", /in step 3 of .* has "lr 0\.\d+, options \w+"/],
  ["another option", "sharded.groups[0].weightDecay = 0.5", /has "lr 0.01, options \w+"/],
  ["a gradient that is missing", "b.grad = null", /has "\d of 2 gradients .*" where this rank has "\d of 2 gradients/],
  ["another gradient of as many", "[a.grad, b.grad] = [null, core.ones([3])]", /"1 of 2 gradients/],
  ["gradients that were not averaged", "a.grad = core.full([70], 2)", /has "2 of 2 gradients/],
  ["weights that were changed", "core.noGrad(() => a.set(core.full([70], 3)))", /has "weights \w+"/],
  ["state that was freed", "sharded.dispose()", /has "state from step \d on"/],
  ["state that was loaded", "sharded.loadStateDict(state)", /options \w+"|has "state from step \d on"/],
])("%s on one rank is named before anything has changed", async (fault, change, message) => {
  const body = `const { rank } = communicator;
    const [a, b] = [core.parameter(core.ones([70])), core.parameter(core.ones([3]))];
    const sharded = new ShardedOptimizer(AdamW, [["a", a], ["b", b]], { lr: 0.01 }, communicator);
    const message = [];
    for (let step = 0; step < 3; step++) {
      [a.grad, b.grad] = [core.ones([70]), ${fault.includes("as many") ? "step === 2 ? null : " : ""}core.ones([3])];
      const state = await sharded.stateDict();
      if (rank === 1 && step === 2) { ${change}; }
      const before = a.tolist().join();
      await sharded.step().catch((error) => message.push(error.code, error.message, before === a.tolist().join()));
    }
    tell(message);`;
  const { told, error } = await runJob(2, body, { imports: IMPORTS });
  expect(error).toBe("");
  for (const rank of [0, 1]) expect(told[rank]).toEqual(["BAD_STATE", expect.stringMatching(message), true]);
});

it("other gradients in the first step are named before anything has changed", async () => {
  const body = `const w = core.parameter(core.ones([300]));
    const sharded = new ShardedOptimizer(AdamW, [["w", w]], {}, communicator);
    w.grad = core.full([300], 1 + communicator.rank);
    await sharded.step().catch((error) => tell([error.code, error.message, w.tolist().every((x) => x === 1)]));`;
  const { told, error } = await runJob(3, body, { imports: IMPORTS });
  expect(error).toBe("");
  const message =
    /all ranks must agree, got "w gradient \w+" on rank 0 and "w gradient \w+" on rank 1\. .*after sync\(\)/;
  expect(told).toEqual(new Array(3).fill(["BAD_STATE", expect.stringMatching(message), true]));
});

describe("rejected", () => {
  const parameters = (): [string, Tensor][] => [["w", parameter([1, 2])]];
  it.each<[string, string, () => Promise<unknown>]>([
    ["no class", "BAD_ARGUMENT", async () => new ShardedOptimizer({} as never, parameters(), {}, await connect())],
    ["no communicator", "BAD_ARGUMENT", async () => new ShardedOptimizer(AdamW, parameters(), {}, {} as never)],
    [
      "forgotten options",
      "BAD_ARGUMENT",
      async () => new ShardedOptimizer(AdamW, parameters(), (await connect()) as never, undefined as never),
    ],
    [
      "steps of whole matrices",
      "UNSUPPORTED",
      async () => new ShardedOptimizer(Muon, [parameter([[1]])], {}, await connect()),
    ],
    [
      "norms of whole parameters",
      "UNSUPPORTED",
      async () => new ShardedOptimizer(Lamb, [parameter([1])], {}, await connect()),
    ],
    [
      "means of whole parameters",
      "UNSUPPORTED",
      async () => new ShardedOptimizer(Adafactor, [parameter([1])], {}, await connect()),
    ],
    [
      "a wrong option",
      "BAD_ARGUMENT",
      async () => new ShardedOptimizer(AdamW, parameters(), { lr: -1 }, await connect()),
    ],
    [
      "a GradScaler, which would skip steps on some ranks alone",
      "BAD_ARGUMENT",
      async () => {
        const sharded = new ShardedOptimizer(AdamW, parameters(), {}, await connect());
        await new GradScaler().step(sharded as never);
      },
    ],
    [
      "state that does not fit",
      "BAD_STATE",
      async () =>
        new ShardedOptimizer(AdamW, parameters(), {}, await connect()).loadStateDict({ groups: [], state: {} }),
    ],
  ])("%s", async (_, code, call) => {
    await expect(call()).rejects.toMatchObject({ code });
  });

  it("a GradScaler, and says what to do", async () => {
    const sharded = new ShardedOptimizer(AdamW, parameters(), {}, await connect());
    expect(() => new GradScaler().step(sharded as never)).toThrow(/got a ShardedOptimizer\. .*train in bf16/);
  });

  it("what comes before a step has ended", async () => {
    const w = parameter([1]);
    const sharded = new ShardedOptimizer(AdamW, [w], { lr: 0.1 }, await connect());
    w.mul(2).sum().backward();
    const step = sharded.step();
    expect(() => sharded.zeroGrad()).toThrow(expect.objectContaining({ code: "BAD_STATE" }));
    await expect(sharded.step()).rejects.toMatchObject({
      code: "BAD_STATE",
      message: expect.stringContaining("await"),
    });
    await step;
    sharded.zeroGrad();
    expect(w.dataSync()[0]).toBeLessThan(1);
  });

  it.each<[string, (w: Tensor) => unknown]>([
    ["cleared", (w) => Object.assign(w, { grad: null })],
    ["replaced", (w) => Object.assign(w, { grad: ones([2]) })],
    ["scaled", (w) => w.grad!.set(ones([2]))],
  ])("gradients that are %s while a step is under way", async (_, change) => {
    const w = parameter([1, 2]);
    const sharded = new ShardedOptimizer(AdamW, [w], {}, await connect());
    w.grad = ones([2]);
    const step = sharded.step();
    change(w);
    await expect(step).rejects.toMatchObject({ code: "CHANGED" });
    expect(w.tolist()).toEqual([1, 2]);
  });

  it("parameters that the model has no more, and steps that averages would put back", async () => {
    const [moved, averaged] = [makeNet(), makeNet()];
    const rejectedStep = async (net: Module, change: (step: () => Promise<void>) => Promise<void>) => {
      const sharded = new ShardedOptimizer(AdamW, net.namedParameters(), { lr: 0.1 }, await connect());
      await expect(
        change(() => {
          for (const x of net.parameters()) x.grad = ones(x.shape, { dtype: x.dtype });
          return sharded.step();
        }),
      ).rejects.toMatchObject({ code: "BAD_STATE" });
    };
    await rejectedStep(moved, (step) => {
      moved.to("f64");
      return step();
    });
    const average = new ExponentialMovingAverage(averaged.namedParameters(), { decay: 0.5 });
    await rejectedStep(averaged, (step) => average.averaged(step));
  });

  it("compiled steps", async () => {
    const [[, w]] = parameters() as [[string, Tensor]];
    const sharded = new ShardedOptimizer(AdamW, [w], {}, await connect());
    let rejected: Promise<void> | undefined;
    const step = compile(() => {
      rejected = sharded.step();
    });
    step();
    await expect(rejected).rejects.toMatchObject({ code: "UNSUPPORTED" });
  });
});
