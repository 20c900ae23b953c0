/** Divided models on ranks beside one process that takes the same batches: every bit, and how many bytes a rank holds. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AdamW } from "@opt/adam-amsgrad";
import { loadCheckpoint, optimizerState } from "@opt/checkpoint";
import { init, parameter, type Tensor } from "@opt/core";
import { BatchNorm1d, Linear, Module, Sequential } from "@opt/nn";
import { expectCode, triesAll } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { connect } from "../connect";
import "../index";
import { accumulation, checkAccumulation } from "../../testing/accumulation";
import { checkTraining } from "../../testing/check-training";
import { jobOf, runJob } from "../../testing/job";
import { memoryRanks } from "../../testing/memory-ranks";
import { WATCH_MEMORY } from "../../testing/peak";
import { bitsOf, makeNet, optimizerOf, type Run, Tied } from "../../testing/training";
import { FullyShardedDataParallel } from "./fully-sharded";

const source = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
const IMPORTS = `import { bitsOf, makeNet, optimizerOf, Tied, trainOnRanks } from ${source("../../testing/training.ts")};
import { FullyShardedDataParallel } from ${source("fully-sharded.ts")};
import { ColumnParallelLinear } from ${source("../tensor-parallel/layers.ts")};
import { layoutOf } from ${source("../layout-of.ts")};
import { Linear, Module, mseLoss, Sequential } from ${source("../../../nn/src/index.ts")};
import { AdamW } from ${source("../../../optimizers/adam-amsgrad/src/index.ts")};
import { SGD } from ${source("../../../optimizers/sgd/src/index.ts")};
import { loadCheckpoint, optimizerContents, optimizerState, saveCheckpoint } from ${source("../../../checkpoint/src/index.ts")};`;

const base: Run = { algorithm: "AdamW", device: "cpu", steps: 5, fully: true };
const runs: Run[] = [
  base,
  { ...base, compiled: true },
  { ...base, keepGathered: true },
  { ...base, keepGathered: true, compiled: true },
  { ...base, algorithm: "NAdam", device: "js", clip: { norm: 0.5 } },
  { ...base, algorithm: "NAdam", compiled: true, clip: { norm: 0.5 } },
  { ...base, stochasticRounding: true },
  { ...base, algorithm: "SGD", device: "wasm", accumulate: 3, steps: 4 },
];

it.each(triesAll ? [2, 3, 4] : [3])("%d ranks train a divided model", (ranks) =>
  checkTraining(ranks, runs, { imports: IMPORTS }),
);

it("4 ranks train a model that pairs of them divide", () => {
  const paired = { ...base, shardOver: 2 };
  const others: Run[] = [
    { ...paired, device: "wasm", accumulate: 2, clip: { norm: 0.5 }, compiled: true },
    { ...paired, algorithm: "Muon", device: "js", steps: 3, shardOver: 1 },
  ];
  return checkTraining(4, [paired, ...others], { imports: IMPORTS });
});

it("says before the first step that a device cannot be read without waiting, also of a model of single numbers", async () => {
  await init("js");
  class Scale extends Module {
    readonly factor = parameter(2);
    forward(x: Tensor): Tensor {
      return x.mul(this.factor);
    }
  }
  const model = new Scale();
  Object.defineProperty(model.factor, "device", { value: { name: "waiting", backend: {} } });
  for (const communicator of memoryRanks(2))
    expectCode("NOT_SYNC", () => new FullyShardedDataParallel(model, communicator));
});

it("groups of all ranks meet, though some ranks have made groups of their own", async () => {
  const body = `const made = (ranks, shardOver) => {
      const model = new Linear(4, 4, { bias: false, generator: new core.Generator(1) });
      return new FullyShardedDataParallel(model, ranks, { shardOver });
    };
    const some = await communicator.split(communicator.rank < 2 ? 0 : 1);
    if (communicator.rank < 2) made(some, 1).dispose();
    const parallel = made(communicator, 2);
    parallel.forward(core.full([1, 4], communicator.rank)).sum().backward();
    await parallel.sync();
    tell(parallel.parameters()[0].grad.dataSync());`;
  const { told, error } = await runJob(4, body, { imports: IMPORTS });
  expect(error).toBe("");
  for (const grad of told) expect(Object.values(grad as object)).toEqual(Array(8).fill((0 + 1 + 2 + 3) / 4));
});

it("a checkpoint of groups has each part once", async () => {
  const folder = mkdtempSync(join(tmpdir(), "opt-groups-"));
  const body = `const saved = [];
    for (const shardOver of [2, 4]) {
      const model = new Sequential(new Linear(64, 64, { bias: false, generator: new core.Generator(1) }));
      const parallel = new FullyShardedDataParallel(model, communicator, { shardOver });
      const optimizer = new SGD(parallel.namedParameters(), { lr: 1 });
      parallel.forward(core.full([1, 64], communicator.rank)).sum().backward();
      await parallel.sync();
      optimizer.step();
      const folder = ${JSON.stringify(join(folder, "of-"))} + shardOver;
      await saveCheckpoint(folder, { step: 1, tensors: parallel.stateDict() }, { communicator, layout: parallel.layout });
      const { tensors } = await loadCheckpoint(folder);
      saved.push([parallel.parameters()[0].shape[0], parallel.layout.mesh.shape, tensors["0.weight"].sum().dataSync()[0]]);
      parallel.dispose();
    }
    tell(saved);`;
  const { told, error } = await runJob(4, body, { imports: IMPORTS });
  rmSync(folder, { recursive: true });
  expect(error).toBe("");
  for (const [paired, all] of told as [number, number[], number][][]) {
    expect(paired!.slice(0, 2)).toEqual([32, [2, 2]]);
    expect(all!.slice(0, 2)).toEqual([16, [4]]);
    expect(paired![2]).toBe(all![2]);
  }
});

const tried = jobOf(
  2,
  {
    memory: `${WATCH_MEMORY} await core.init("cpu");
      const layers = Array.from({ length: 8 }, (_, i) => new Linear(256, 256, { bias: false, generator: new core.Generator(i) }));
      const parallel = new FullyShardedDataParallel(new Sequential(...layers), communicator);
      const optimizer = new AdamW(parallel.namedParameters());
      const peakOf = watchMemory(parallel.parameters()[0].device);
      for (let step = 0; step < 3; step++) {
        core.tidy(() => parallel.forward(core.ones([1, 256])).sum().backward());
        await parallel.sync();
        optimizer.step();
        optimizer.zeroGrad();
      }
      tell(peakOf());`,
    kept: `const results = [];
      for (const keepGathered of [false, true]) {
        const parallel = new FullyShardedDataParallel(new Sequential(new Linear(4, 8), new Linear(8, 4)), communicator, { keepGathered });
        const { bytes } = communicator.traffic;
        parallel.forward(core.ones([1, 4])).sum().backward();
        await parallel.sync();
        const trained = communicator.traffic.bytes - bytes;
        core.noGrad(() => parallel.forward(core.ones([1, 4])));
        const whole = parallel.module.parameters().filter((x) => !core.isEvicted(x)).length;
        results.push([trained, whole]);
        parallel.dispose();
      }
      tell(results);`,
    wide: `const sums = [];
      for (const reduceDType of [undefined, "f32"]) {
        const w = new Module();
        w.x = core.parameter([1, 1], { dtype: "bf16" });
        w.forward = () => w.x;
        const parallel = new FullyShardedDataParallel(w, communicator, reduceDType && { reduceDType });
        // bf16 holds 256 and 258, not 257.
        parallel.noSync(() => parallel.forward().sum().mul(communicator.rank === 0 ? 256 : 1).backward());
        parallel.forward().sum().mul(communicator.rank === 0 ? 0 : 1).backward();
        await parallel.sync();
        sums.push(parallel.parameters()[0].grad.dataSync()[0]);
        parallel.dispose();
      }
      let code;
      try { new FullyShardedDataParallel(new Linear(2, 2), communicator, { reduceDType: "bf16" }); } catch (error) { code = error.code; }
      tell([...sums, code]);`,
    skipped: `const parallel = new FullyShardedDataParallel(new Linear(4, 8, { generator: new core.Generator(1) }), communicator);
      const optimizer = new SGD(parallel.namedParameters(), { lr: 0.5 });
      const average = new core.ExponentialMovingAverage(parallel.namedParameters(), { decay: 0.5 });
      const scaler = new core.GradScaler({ initScale: 8 });
      const sums = [];
      for (let step = 0; step < 3; step++) {
        scaler.scale(parallel.forward(core.ones([1, 4])).sum()).backward();
        await parallel.sync();
        const [, weight] = parallel.namedParameters()[0];
        if (step === 1 && communicator.rank === 1) weight.grad.set(core.full([4, 4], Infinity));
        if (step === 1) await parallel.sync();
        scaler.step(optimizer);
        scaler.update();
        average.update();
        optimizer.zeroGrad();
        sums.push([scaler.stateDict().scale, weight.dataSync()[0]]);
      }
      const averaged = average.averaged(() => parallel.namedParameters()[0][1].dataSync()[0]);
      tell([...sums, averaged]);`,
    disposed: `const model = new Linear(4, 8, { generator: new core.Generator(1) });
      const before = model.weight.tolist();
      const parallel = new FullyShardedDataParallel(model, communicator);
      parallel.dispose();
      const optimizer = new SGD(model.namedParameters(), { lr: 0.5 });
      model.forward(core.ones([1, 4])).sum().backward();
      optimizer.step();
      optimizer.zeroGrad();
      optimizer.step(); // leaves out what has no gradient
      tell([before, model.weight.add(0.5).tolist()]);`,
    accumulating: accumulation("new FullyShardedDataParallel(net, communicator)"),
  },
  { imports: IMPORTS },
);

it("hold 1 / W of parameters, gradients and state, and two modules at most", async () => {
  const layer = 4 * 256 * 256;
  const kinds = 4; // parameters, gradients, two moments
  const activations = 64 << 10;
  for (const peak of await tried("memory"))
    expect(peak).toBeLessThan((kinds * 8 * layer) / 2 + 2 * layer + activations);
});

it("keepGathered sends weights once, and frees them where no backward follows", async () => {
  for (const [[freed, none], [kept, left]] of (await tried("kept")) as never as [
    [number, number],
    [number, number],
  ][]) {
    expect(kept).toBeLessThan(freed);
    expect([none, left]).toEqual([0, 0]);
  }
});

it("evaluates by the weights of now, those too that are used outside of their module", async () => {
  const body = `class Reused extends Module {
      inner = new Linear(4, 4, { bias: false, generator: new core.Generator(1) });
      forward(x) { return this.inner.forward(x).add(this.inner.weight.sum()); }
    }
    const parallel = new FullyShardedDataParallel(new Reused(), communicator);
    const evaluated = () => core.noGrad(() => parallel.forward(core.ones([1, 4])).dataSync());
    const before = evaluated();
    const [part] = parallel.parameters();
    core.noGrad(() => part.set(part.mul(2)));
    tell([[...before], [...evaluated()]]);`;
  const { told, error } = await runJob(2, body, { imports: IMPORTS });
  expect(error).toBe("");
  for (const [before, after] of told as [number[], number[]][]) expect(after).toEqual(before.map((x) => 2 * x));
});

it("reduceDType adds 16-bit gradients in 32 bits", async () => {
  for (const found of (await tried("wide")) as never as [number, number, string][])
    expect(found).toEqual([129, 129, "BAD_ARGUMENT"]);
});

it("dispose leaves a whole model, whose parameters an optimizer may step, with gradients or without", async () => {
  for (const [before, after] of (await tried("disposed")) as never as [number[][], number[][]][])
    for (const [i, row] of after.flat().entries()) expect(row).toBeCloseTo(before.flat()[i]!, 6);
});

it("add gradients, by a second backward and sync, and in an async noSync to its end", async () =>
  checkAccumulation(await tried("accumulating")));

const RUN: Run = { algorithm: "AdamW", device: "js", steps: 1 };
const MAKE = `const parallel = new FullyShardedDataParallel(makeNet(), communicator);
  const optimizer = optimizerOf(${JSON.stringify(RUN)}, parallel);
  const wholeBits = () => bitsOf(parallel, optimizer, (name, x) => name in parallel.layout.tensors ? communicator.allGather(x) : x);`;

/** A divided parameter of two names: checkpoints hold it whole under both. */
const TIED = `const tied = new FullyShardedDataParallel(new Tied(), communicator);
  const table = async () => Array.from((await communicator.allGather(tied.parameters()[0])).dataSync());`;

it("save boxes that other numbers of ranks go on from, tied weights too", async () => {
  const folder = mkdtempSync(join(tmpdir(), "opt-divided-"));
  try {
    const path = JSON.stringify(folder);
    const saved = await runJob(
      2,
      `${MAKE}
      for (let step = 0; step < 3; step++) {
        core.tidy(() => parallel.forward(core.ones([2, 6]), true).sum().backward());
        await parallel.sync();
        optimizer.step();
        optimizer.zeroGrad();
      }
      const { tensors, values } = optimizerContents(optimizer.stateDict());
      const contents = { step: 3, tensors: { ...parallel.stateDict(), ...tensors }, values };
      await saveCheckpoint(${path}, contents, { communicator, layout: parallel.layout });
      ${TIED}
      const sgd = new SGD(tied.namedParameters(), { lr: 0.5 });
      tied.forward(core.tensor([[0, 5]], { dtype: "i32" })).sum().backward();
      await tied.sync();
      sgd.step();
      await saveCheckpoint(${path} + "-tied", { step: 1, tensors: tied.stateDict() }, { communicator, layout: tied.layout });
      tell([await wholeBits(), await table(), tied.layout.tensors]);`,
      { imports: IMPORTS },
    );
    expect(saved.error).toBe("");
    const [[bits, table, tensors]] = saved.told as [[object, number[], object]];
    expect(tensors).toEqual({ "table.weight": ["rank", null], "head.weight": ["rank", null], "*": "replicate" });
    const resume = `${MAKE}
      const loaded = await loadCheckpoint(${path}, { layout: parallel.layout, rank: communicator.rank });
      parallel.loadStateDict(loaded.tensors);
      parallel.loadStateDict({}, { strict: false }); // nothing changes
      optimizer.loadStateDict(optimizerState(loaded));
      ${TIED}
      const { layout } = tied;
      tied.loadStateDict((await loadCheckpoint(${path} + "-tied", { layout, rank: communicator.rank })).tensors);
      tell([await wholeBits(), await table()]);`;
    const { told, error } = await runJob(3, resume, { imports: IMPORTS });
    expect(error).toBe("");
    expect(told).toEqual(new Array(3).fill([bits, table]));
    await init("js");
    const model = makeNet();
    const optimizer = optimizerOf(RUN, model);
    const loaded = await loadCheckpoint(folder);
    model.loadStateDict(Object.fromEntries(Object.keys(model.stateDict()).map((name) => [name, loaded.tensors[name]])));
    optimizer.loadStateDict(optimizerState(loaded));
    expect(await bitsOf(model, optimizer)).toEqual(bits);
    const { tensors: whole } = await loadCheckpoint(`${folder}-tied`);
    for (const name of ["table.weight", "head.weight"]) expect(whole[name]!.shape).toEqual([6, 4]);
    const alone = new FullyShardedDataParallel(new Tied(), await connect());
    alone.loadStateDict(whole);
    expect(Array.from(alone.module.head.weight.dataSync())).toEqual(table);
  } finally {
    for (const path of [folder, `${folder}-tied`]) rmSync(path, { recursive: true, force: true });
  }
});

/** Scale and weight after each of three steps, and the averaged weight. */
type Skipped = [first: [number, number], second: [number, number], third: [number, number], averaged: number];

it("skip a step together where one rank's gradients are not finite, and average weights by parts", async () => {
  for (const [first, second, third, averaged] of (await tried("skipped")) as never as Skipped[]) {
    expect([first[0], second[0], third[0]]).toEqual([8, 4, 4]);
    expect(second[1]).toBe(first[1]); // skipped
    expect(third[1]).toBeCloseTo(first[1] - 0.5, 5);
    expect(averaged).not.toBe(third[1]);
  }
});

it("divide layers of a mesh once more", async () => {
  const body = `const grid = mesh(communicator, { data: 2, model: 2 });
    const make = () => new Sequential(
      new ColumnParallelLinear(4, 8, grid.axis("model"), { generator: new core.Generator(1), gatherOutput: true }),
      new Linear(8, 2, { generator: new core.Generator(2) }));
    const net = make();
    const parallel = new FullyShardedDataParallel(net, grid.axis("data"));
    const optimizer = new SGD(parallel.namedParameters(), { lr: 0.5 });
    parallel.forward(core.ones([1, 4])).sum().backward();
    await parallel.sync();
    optimizer.step();
    const whole = new Sequential(
      new Linear(4, 8, { generator: new core.Generator(1) }), new Linear(8, 2, { generator: new core.Generator(2) }));
    whole.forward(core.ones([1, 4])).sum().backward();
    new SGD(whole.namedParameters(), { lr: 0.5 }).step();
    const { tensors } = layoutOf(net, grid);
    const [r, c] = grid.coordinates;
    const rows = whole.namedChildren()[0][1].weight.slice(4 * c + 2 * r, 4 * c + 2 * r + 2, 0).dataSync();
    const part = parallel.namedParameters()[0][1].dataSync();
    tell([tensors["0.weight"], tensors["1.weight"], Math.max(...part.map((x, i) => Math.abs(x - rows[i])))]);`;
  const { told, error } = await runJob(4, body, { imports: IMPORTS });
  expect(error).toBe("");
  for (const [column, plain, distance] of told as [unknown, unknown, number][]) {
    expect([column, plain]).toEqual([{ split: [["model", "data"], null], nested: true }, ["data", null]]);
    expect(distance).toBeLessThan(1e-6);
  }
});

/** By two ranks, both; the last one leaves them apart. */
const MISUSE: [string, string, string, RegExp][] = [
  ["reading a whole weight", "model.weight.dataSync()", "BAD_STATE", /weight is divided over the ranks.*stateDict/],
  ["an optimizer of the model", "new SGD(model.namedParameters())", "BAD_STATE", /parallel\.namedParameters\(\)/],
  ["a norm of the model's", "core.clipGradNorm(model.parameters(), 1)", "BAD_STATE", /in place of the model's/],
  ["state of other ranks", "parallel.loadStateDict({ bias: core.ones([8]) })", "BAD_STATE", /must have shape \[4/],
  ["a second backward", "backward(), backward()", "BAD_STATE", /a second time before sync/],
  [
    "another learning rate",
    "(new SGD(parallel.namedParameters(), { lr: 1 + rank }).step(), backward())",
    "BAD_STATE",
    /gathering of weights.* "step 1 with lr [12], options .*" where this rank has "step 1 with lr [12],.*optimizers/,
  ],
  [
    "other modules than the others",
    "rank === 0 ? backward() : core.clipGradNorm(parallel.parameters(), 1)",
    "BAD_STATE",
    /rank . calls gathering of .* where this rank calls gathering of/,
  ],
];

it(`reports ${MISUSE.map(([name]) => name).join(", ")}`, async () => {
  const body = `const { rank } = communicator;
    const attempt = async (fault) => {
      const model = new Linear(4, 8, { generator: new core.Generator(1) });
      const parallel = new FullyShardedDataParallel(model, communicator);
      const backward = () => parallel.forward(core.ones([1, 4])).sum().backward();
      backward();
      await parallel.sync();
      try { await fault({ rank, model, parallel, backward }); } catch (error) { return [error.code, error.message]; }
      return "nothing";
    };
    const told = [];
    for (const fault of [${MISUSE.map(([, fault]) => `({ rank, model, parallel, backward }) => (${fault})`)}])
      told.push(await attempt(fault));
    tell(told);
    await sleep(200);
    process.exit(0);`;
  const { told } = await runJob(2, body, { imports: IMPORTS });
  const expected = MISUSE.map(([, , code, message]) => [code, expect.stringMatching(message)]);
  expect(told).toEqual([expected, expected]);
});

it("one rank trains as the model alone", async () => {
  const communicator = await connect();
  const [alone, model] = [makeNet(), makeNet()];
  const parallel = new FullyShardedDataParallel(model, communicator, { reduceDType: "f32" });
  const optimizers = [new AdamW(alone.namedParameters()), new AdamW(parallel.namedParameters())];
  const x = (await import("@opt/core")).ones([2, 6]);
  for (const each of [alone, parallel]) each.forward(x, true).sum().backward();
  await parallel.sync();
  for (const optimizer of optimizers) optimizer.step();
  expect(await bitsOf(model, optimizers[1]!)).toEqual(await bitsOf(alone, optimizers[0]!));
  parallel.dispose();
});

describe("wrong arguments", () => {
  class Empty extends Module {
    forward(x: Tensor): Tensor {
      return x;
    }
  }
  const made = async (of: unknown = new Linear(2, 2), options = {}) =>
    new FullyShardedDataParallel(of as Linear, await connect(), options);
  it.each<[string, () => Promise<unknown>]>([
    ["no module", () => made({})],
    ["no communicator", async () => new FullyShardedDataParallel(new Linear(2, 2), {} as never)],
    ["no parameters", () => made(new Empty())],
    ["groups that the ranks don't fill", () => made(new Linear(2, 2), { shardOver: 2 })],
    ["a unit of another model", () => made(new Linear(2, 2), { units: [new Linear(1, 1)] })],
  ])("%s", async (_, call) => {
    await expect(call()).rejects.toMatchObject({ code: "BAD_ARGUMENT" });
  });
});

describe("of one rank", () => {
  const made = async (options = {}) => {
    const model = new Sequential(new Linear(2, 2), new BatchNorm1d(2));
    model.parameters()[0]!.requiresGrad = false;
    return new FullyShardedDataParallel(model, await connect(), options);
  };

  it("parameters are those that train with trainable: true", async () => {
    const parallel = await made();
    const names = (trainable: boolean) => parallel.namedParameters({ trainable }).map(([name]) => name);
    expect(names(false)).toEqual(["0.weight", "0.bias", "1.weight", "1.bias"]);
    expect(names(true)).toEqual(["0.bias", "1.weight", "1.bias"]);
    expect([true, false].map((trainable) => parallel.parameters({ trainable }).length)).toEqual([3, 4]);
  });
});

it("buffers are the first rank's after a sync, unless broadcastBuffers is false", async () => {
  const { told, error } = await runJob(
    2,
    `const statistics = async (options) => {
      const model = new Sequential(new Linear(2, 2, { generator: new core.Generator(1) }), new BatchNorm1d(2));
      const parallel = new FullyShardedDataParallel(model, communicator, options);
      for (let step = 0; step < 2; step++) {
        parallel.forward(core.tensor([[1, 2], [3, 5]]).mul(1 + communicator.rank)).sum().backward();
        await parallel.sync();
      }
      return Array.from(model.modules().at(-1).running_mean.dataSync());
    };
    tell([await statistics({}), await statistics({ broadcastBuffers: false })]);`,
    { imports: IMPORTS.replace("Linear, Module", "BatchNorm1d, Linear, Module") },
  );
  expect(error).toBe("");
  const [[shared, own], [sharedThere, ownThere]] = told as [[number[], number[]], [number[], number[]]];
  expect(sharedThere).toEqual(shared);
  expect(ownThere).not.toEqual(own);
});
