/** Divided state against whole state: every bit of it and of the parameters, while training and through checkpoints. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AdamW } from "@opt/adam-amsgrad";
import { loadCheckpoint, optimizerState, saveCheckpoint } from "@opt/checkpoint";
import {
  type BaseOptions,
  combine,
  compile,
  ExponentialMovingAverage,
  Generator,
  GradScaler,
  type GroupOptions,
  init,
  Lookahead,
  l2,
  ones,
  type Parameters,
  parameter,
  randn,
  rowSparse,
  SAM,
  scheduleFree,
  type Tensor,
  tensor,
} from "@opt/core";
import { LBFGS } from "@opt/lbfgs";
import { Muon } from "@opt/muon";
import type { Module } from "@opt/nn";
import { SGD } from "@opt/sgd";
import { hutchinson, Sophia } from "@opt/sophia";
import { expectCode, triesAll } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { checkTraining, checkTrainingInMemory } from "../../testing/check-training";
import { runJob } from "../../testing/job";
import { runInMemory } from "../../testing/memory-job";
import { bitsOf, makeNet, optimizerOf, type Run, shardedOf } from "../../testing/training";
import { connect } from "../connect";
import { DataParallel } from "../data-parallel/data-parallel";
import { ShardedOptimizer } from "./sharded-optimizer";
import "../index";

const IMPORTS = `import { trainOnRanks } from "${new URL("../../testing/training.ts", import.meta.url).href}";
import { ShardedOptimizer } from "${new URL("sharded-optimizer.ts", import.meta.url).href}";
import { AdamW } from "${new URL("../../../optimizers/adam-amsgrad/src/index.ts", import.meta.url).href}";
import { NAdam } from "${new URL("../../../optimizers/nadam/src/index.ts", import.meta.url).href}";`;

const RUNS: readonly Run[] = [
  { algorithm: "NAdam", device: "cpu", steps: 6, sharded: true },
  { algorithm: "AdamW", device: "wasm", steps: 6, sharded: true },
  { algorithm: "AdamW", device: "cpu", steps: 6, sharded: true, stochasticRounding: true },
  { algorithm: "AMSGrad", device: "js", steps: 6, sharded: true },
  { algorithm: "AdamW", device: "cpu", steps: 6, sharded: true, clip: { norm: 0.3, value: 0.1 } },
  { algorithm: "Muon", device: "cpu", steps: 6, sharded: true, clip: { norm: 0.3 } },
  { algorithm: "Lamb", device: "js", steps: 6, sharded: true },
  { algorithm: "Adafactor", device: "wasm", steps: 6, sharded: true },
  { algorithm: "Prodigy", device: "wasm", steps: 6, sharded: true, clip: { norm: 0.3 } },
  { algorithm: "DAdaptAdamW", device: "js", steps: 4, sharded: true },
];

it.each(triesAll ? [2, 3, 4, 8] : [3])("divided state has the bits of whole state: %d ranks", (ranks) =>
  checkTraining(ranks, RUNS, { imports: IMPORTS }),
);

it.each([
  [2, { algorithm: "AdamW", clip: { norm: 0.3, value: 0.1 } }],
  [3, { algorithm: "AMSGrad", accumulate: 2 }],
  [3, { algorithm: "Muon", clip: { norm: 0.3 } }],
  [3, { algorithm: "NorMuon" }],
  [3, { algorithm: "Adafactor" }],
] as [number, Partial<Run>][])(
  "%d ranks of this process divide state, with the bits of whole state: %j",
  (ranks, run) => checkTrainingInMemory(ranks, { algorithm: "AdamW", device: "js", steps: 4, sharded: true, ...run }),
);

type Named = [string, Tensor][];
const isMatrix = (_: string, { shape }: Tensor) => shape.length === 2;
const MAKERS = {
  combine: (params: Named) => combine(params, { matrices: Muon, rest: AdamW }, { rest: { lr: 0.1 } }, { isMatrix }),
  Lookahead: (params: Named) => new Lookahead(new AdamW(params, { lr: 0.1, clip: { norm: 0.5 } }), { k: 2 }),
  scheduleFree: (params: Named) => scheduleFree(new SGD(params, { lr: 0.1 })),
} as const;

it.each(Object.keys(MAKERS) as (keyof typeof MAKERS)[])(
  "%s is divided over 3 ranks with the bits of whole state, and goes on on 2",
  async (name) => {
    const make = MAKERS[name];
    const full = () => {
      const drawn = (shape: number[], seed: number) => parameter(randn(shape, { generator: new Generator(seed) }));
      return [
        ["a", drawn([4, 3], 1)],
        ["b", drawn([3], 2)],
        ["c", drawn([2, 2], 3)],
        ["s", drawn([], 4)],
      ] as Named;
    };
    const setGradients = (params: Named, step: number) => {
      for (const [i, [, x]] of params.entries()) x.grad = randn(x.shape, { generator: new Generator(10 * step + i) });
    };
    const names = {
      make,
      full,
      setGradients,
      ShardedOptimizer,
      loadCheckpoint,
      optimizerState,
      saveCheckpoint,
      bitsOf,
    };
    const folder = mkdtempSync(join(tmpdir(), "opt-made-"));
    const program = (resumes: boolean, steps: readonly number[]) => `
      const params = full();
      const sharded = new ShardedOptimizer(make, params, {}, communicator);
      if (${resumes}) {
        const loaded = await loadCheckpoint(${JSON.stringify(folder)});
        for (const [name, x] of params) core.noGrad(() => x.set(loaded.tensors[name]));
        sharded.loadStateDict(optimizerState(loaded));
      }
      for (const step of ${JSON.stringify(steps)}) { setGradients(params, step); await sharded.step(); }
      const { tensors, values } = await sharded.contents();
      const layout = { mesh: { shape: [communicator.size], axes: ["rank"] }, tensors: { "*": "replicate" } };
      await saveCheckpoint(${JSON.stringify(folder)}, { step: ${steps.length}, tensors: { ...Object.fromEntries(params), ...tensors }, values }, { communicator, layout, overwrite: true });
      tell(await bitsOf({ namedParameters: () => params }, sharded));`;
    const alone = full();
    const optimizer = make(alone);
    const bits = [];
    for (let step = 0; step < 6; step++) {
      setGradients(alone, step);
      optimizer.step();
      bits.push(await bitsOf({ namedParameters: () => alone }, optimizer));
    }
    try {
      expect(await runInMemory(3, program(false, [0, 1, 2]), names)).toEqual(new Array(3).fill(bits[2]));
      expect(await runInMemory(2, program(true, [3, 4, 5]), names)).toEqual(new Array(2).fill(bits[5]));
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);

it("shows the average of scheduleFree on all ranks, and goes on", async () => {
  const alone = [["w", parameter([1, -2])]] as Named;
  const optimizer = MAKERS.scheduleFree(alone);
  alone[0]![1].grad = tensor([1, 2]);
  optimizer.step();
  optimizer.eval();
  const average = alone[0]![1].tolist();
  optimizer.train();
  const body = `const params = [["w", core.parameter([1, -2])]];
    const sharded = new ShardedOptimizer(make, params, {}, communicator);
    params[0][1].grad = core.tensor([1, 2]);
    await sharded.step();
    await sharded.eval();
    const average = params[0][1].tolist();
    await sharded.train();
    tell([average, params[0][1].tolist()]);`;
  const names = { ShardedOptimizer, make: MAKERS.scheduleFree };
  expect(await runInMemory(2, body, names)).toEqual(new Array(2).fill([average, alone[0]![1].tolist()]));
});

it.each<[string, (params: Named) => unknown, object]>([
  ["SAM, which calls closures", (params) => new SAM(new AdamW(params)), {}],
  ["what makes no optimizer", () => ({}), {}],
  ["options beside a function", (params) => new AdamW(params), { lr: 1 }],
  [
    "groups by shapes, of which parts have others",
    (params) => new AdamW([{ params: params.filter(([, { size }]) => size > 0) }]),
    {},
  ],
])("rejects %s", async (_, make, options) => {
  const body = `try { new ShardedOptimizer(make, [["a", core.parameter([1])], ["b", core.parameter([2])]], options, communicator); tell("made"); }
    catch (error) { tell(error.code); }`;
  expect(await runInMemory(2, body, { make, options, ShardedOptimizer })).toEqual(["BAD_ARGUMENT", "BAD_ARGUMENT"]);
});

const RUN: Run = { algorithm: "NAdam", device: "js", steps: 1 };

const algorithms = triesAll ? (["NAdam", "Muon", "Lamb", "Adafactor"] as const) : (["NAdam", "Adafactor"] as const);

it.each(algorithms)("%s is saved by its parts on 3 ranks, and goes on on 2 and without division", async (algorithm) => {
  const run: Run = { algorithm, device: "js", steps: 1 };
  const folder = mkdtempSync(join(tmpdir(), "opt-sharded-"));
  const names = { bitsOf, loadCheckpoint, makeNet, optimizerState, saveCheckpoint, shardedOf };
  // Gradients that are equal on all ranks: what counts here is the state.
  const train = `const train = async (model, optimizer, steps) => {
    for (let step = 0; step < steps; step++) {
      for (const x of model.parameters()) x.grad = core.randn(x.shape, { dtype: x.dtype, generator: new core.Generator(step) });
      await optimizer.step();
    }
  };`;
  try {
    const saved = await runInMemory(
      3,
      `${train}
       const model = makeNet();
       const sharded = shardedOf(${JSON.stringify(run)}, model, communicator);
       await train(model, sharded, 3);
       const { tensors, values } = await sharded.contents();
       const layout = { mesh: { shape: [3], axes: ["rank"] }, tensors: { "*": "replicate" } };
       await saveCheckpoint(${JSON.stringify(folder)}, { step: 3, tensors: { ...model.stateDict(), ...tensors }, values }, { communicator, layout });
       tell(await bitsOf(model, sharded));`,
      names,
    );
    const resumed = await runInMemory(
      2,
      `${train}
       const model = makeNet();
       const sharded = shardedOf(${JSON.stringify(run)}, model, communicator);
       const loaded = await loadCheckpoint(${JSON.stringify(folder)});
       const weights = Object.keys(model.stateDict()).map((name) => [name, loaded.tensors[name]]);
       model.loadStateDict(Object.fromEntries(weights));
       sharded.loadStateDict(optimizerState(loaded));
       const before = await bitsOf(model, sharded);
       await train(model, sharded, 2);
       tell([before, await bitsOf(model, sharded)]);`,
      names,
    );
    await init("js");
    const model = makeNet();
    const optimizer = optimizerOf(run, model);
    const loaded = await loadCheckpoint(folder);
    const weights = Object.keys(model.stateDict()).map((name) => [name, loaded.tensors[name]!] as const);
    model.loadStateDict(Object.fromEntries(weights));
    optimizer.loadStateDict(optimizerState(loaded));
    const whole = await bitsOf(model, optimizer);
    for (const bits of saved) expect(bits).toEqual(whole);
    for (let step = 0; step < 2; step++) {
      for (const x of model.parameters()) x.grad = randn(x.shape, { dtype: x.dtype, generator: new Generator(step) });
      optimizer.step();
    }
    const after = await bitsOf(model, optimizer);
    for (const bits of resumed) expect(bits).toEqual([whole, after]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

/** In processes: ranks exchange parts of vectors within a step. */
const SEARCHES = `
const OPTIONS = { lineSearch: "strongWolfe", maxIter: 4, historySize: 3 };
const x = core.randn([8, 4], { generator: new core.Generator(3) });
const makeLayer = () => new Linear(4, 300, { generator: new core.Generator(1) });
const search = (layer, optimizer) => optimizer.step(() => {
  optimizer.zeroGrad();
  const loss = layer.forward(x).pow(4).mean();
  loss.backward();
  return loss;
});
const textOf = (value) => JSON.stringify(value, (_, each) => each?.tolist?.() ?? each);
const { createHash } = await import("node:crypto");
const weights = (layer) => createHash("sha256").update(textOf(layer.parameters())).digest("hex");`;

it.each(triesAll ? [2, 3, 4, 8] : [2])(
  "each of %d ranks keeps a part of LBFGS' vectors, with the words of one, and any number goes on",
  async (ranks) => {
    const folder = JSON.stringify(mkdtempSync(join(tmpdir(), "opt-sharded-")));
    const imports = `import { LBFGS } from "${new URL("../../../optimizers/lbfgs/src/index.ts", import.meta.url).href}";
import { Linear } from "${new URL("../../../nn/src/index.ts", import.meta.url).href}";
import { loadCheckpoint, optimizerState, saveCheckpoint } from "${new URL("../../../checkpoint/src/index.ts", import.meta.url).href}";
${IMPORTS}`;
    const told = async <Told>(size: number, body: string) => {
      const job = await runJob(size, SEARCHES + body, { imports });
      expect([job.code, job.error]).toEqual([0, ""]);
      return job.told as Told[];
    };
    try {
      const trained = await told<[boolean, boolean, number[], string]>(
        ranks,
        `const [layer, right] = [makeLayer(), makeLayer()];
        const sharded = new ShardedOptimizer(LBFGS, layer.namedParameters(), OPTIONS, communicator);
        const optimizer = new LBFGS(right.namedParameters(), OPTIONS);
        for (let step = 0; step < 2; step++) {
          await search(layer, sharded);
          await search(right, optimizer);
        }
        const areEqual = weights(layer) === weights(right);
        const isSameState = textOf(await sharded.stateDict()) === textOf(optimizer.stateDict());
        const { tensors, values } = await sharded.contents();
        const layout = { mesh: { shape: [communicator.size], axes: ["rank"] }, tensors: { "*": "replicate" } };
        await saveCheckpoint(${folder}, { step: 2, tensors: { ...layer.stateDict(), ...tensors }, values }, { communicator, layout });
        await search(layer, sharded);
        tell([areEqual, isSameState, Object.values(tensors).map(({ tensor }) => tensor.size), weights(layer)]);`,
      );
      const [, , vectors, right] = trained[0]!;
      for (const [areEqual, isSameState, , text] of trained)
        expect([areEqual, isSameState, text]).toEqual([true, true, right]);
      expect(vectors).toHaveLength(2 + 2 * 3);
      for (const [i] of vectors.entries()) {
        const sizes = trained.map(([, , own]) => own[i]!);
        expect(sizes.reduce((a, b) => a + b)).toBe(1500);
        expect(Math.max(...sizes)).toBeLessThanOrEqual(1500 / ranks + 256);
      }
      for (const size of [1, 3]) {
        const resumed = await told<string>(
          size,
          `const layer = makeLayer();
          const sharded = new ShardedOptimizer(LBFGS, layer.namedParameters(), {}, communicator);
          const loaded = await loadCheckpoint(${folder});
          layer.loadStateDict({ weight: loaded.tensors.weight, bias: loaded.tensors.bias });
          sharded.loadStateDict(optimizerState(loaded));
          await search(layer, sharded);
          tell(weights(layer));`,
        );
        expect(resumed).toEqual(new Array(size).fill(right));
      }
    } finally {
      rmSync(JSON.parse(folder), { recursive: true, force: true });
    }
  },
);

/** What rank 1 alone does before the third step. */
const FAULTS: readonly [fault: string, change: string, message: RegExp][] = [
  ["another learning rate", "sharded.groups[0].lr = 0.5", /in step 3 of .* has "lr 0\.\d+, options \w+"/],
  ["another option", "sharded.groups[0].weightDecay = 0.5", /has "lr 0.01, options \w+"/],
  ["a gradient that is missing", "b.grad = null", /has "\d of 2 gradients .*" where this rank has "\d of 2 gradients/],
  ["another gradient of as many", "[a.grad, b.grad] = [null, core.ones([3])]", /"1 of 2 gradients/],
  ["gradients that were not averaged", "a.grad = core.full([70], 2)", /has "2 of 2 gradients/],
  ["weights that were changed", "core.noGrad(() => a.set(core.full([70], 3)))", /has "weights \w+"/],
  ["state that was freed", "sharded.dispose()", /has "state from step \d on"/],
  ["state that was loaded", "sharded.loadStateDict(state)", /options \w+"|has "state from step \d on"/],
];

/** In processes: each counts its own memory. */
const PART = `const { rank } = communicator;
      const ones = core.ones([300, 200]);
      const weight = core.parameter(ones);
      ones.dispose();
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

const BODIES = {
  swaps: `const run = ${JSON.stringify({ ...RUN, algorithm: "ScheduleFreeAdamW" })};
      const train = async (make) => {
        const model = makeNet();
        const optimizer = make(model);
        const bits = [];
        for (let step = 0; step < 6; step++) {
          for (const x of model.parameters()) x.grad = core.randn(x.shape, { dtype: x.dtype, generator: new core.Generator(step) });
          await optimizer.step();
          if (step % 2 === 0) continue;
          await optimizer.eval();
          bits.push(await bitsOf(model, optimizer));
          await optimizer.train();
        }
        return [...bits, await bitsOf(model, optimizer)];
      };
      tell([await train((model) => optimizerOf(run, model)), await train((model) => shardedOf(run, model, communicator))]);`,
  faults: `const { rank } = communicator;
      const attempt = async (isOther, change) => {
        const [a, b] = [core.parameter(core.ones([70])), core.parameter(core.ones([3]))];
        const sharded = new ShardedOptimizer(AdamW, [["a", a], ["b", b]], { lr: 0.01 }, communicator);
        const message = [];
        for (let step = 0; step < 3; step++) {
          [a.grad, b.grad] = [core.ones([70]), isOther && step === 2 ? null : core.ones([3])];
          const state = await sharded.stateDict();
          if (rank === 1 && step === 2) change({ sharded, a, b, state });
          const before = a.tolist().join();
          await sharded.step().catch((error) => message.push(error.code, error.message, before === a.tolist().join()));
        }
        return message;
      };
      const messages = [];
      ${FAULTS.map(
        ([fault, change]) =>
          `messages.push(await attempt(${fault.includes("as many")}, ({ sharded, a, b, state }) => { ${change}; }));`,
      ).join("\n")}
      tell(messages);`,
  first: `const w = core.parameter(core.ones([300]));
      const sharded = new ShardedOptimizer(AdamW, [["w", w]], {}, communicator);
      w.grad = core.full([300], 1 + communicator.rank);
      await sharded.step().catch((error) => tell([error.code, error.message, w.tolist().every((x) => x === 1)]));`,
};
const tried = (name: keyof typeof BODIES) =>
  runInMemory(2, BODIES[name], { AdamW, bitsOf, makeNet, optimizerOf, shardedOf, ShardedOptimizer });

it("swaps the weights that are trained and those that are evaluated on all ranks", async () => {
  for (const [whole, divided] of (await tried("swaps")) as [unknown[], unknown[]][]) {
    expect(whole).toHaveLength(4);
    expect(divided).toEqual(whole);
  }
});

it("has no weights to evaluate of an optimizer that has none", async () => {
  const sharded = new ShardedOptimizer(AdamW, [parameter([1])], {}, await connect());
  await expect(sharded.eval()).rejects.toMatchObject({ code: "UNSUPPORTED" });
});

it("averages estimates of Sophia with the bits of one process, each averaged over the ranks", async () => {
  const body = `const made = () => { const model = makeNet(); return [model, [...model.parameters()]]; };
    const [whole, params] = made();
    const [divided, parts] = made();
    const parallel = new DataParallel(divided, communicator);
    const one = new Sophia(params, { lr: 0.01 });
    const own = new ShardedOptimizer(Sophia, parts, { lr: 0.01 }, communicator);
    const lossOf = (x, rank, step) => x.map((w) => w.pow(4).mul(1 + rank + step).sum()).reduce((a, b) => a.add(b));
    const generators = Array.from({ length: 3 }, () => new core.Generator(5));
    for (let step = 0; step < 3; step++) {
      const isGiven = step < 2;
      // What one process has as an estimate: the mean over the ranks.
      const sums = params.map(() => null);
      for (const rank of [0, 1]) {
        one.zeroGrad();
        if (isGiven) hutchinson(lossOf(params, rank, step), params, { generator: generators[rank] });
        else lossOf(params, rank, step).backward();
        params.forEach((w, i) => { sums[i] = sums[i] === null ? w.grad.clone() : sums[i].add(w.grad); });
      }
      params.forEach((w, i) => { w.grad = sums[i].div(2); });
      if (isGiven) hutchinson(lossOf(parts, communicator.rank, step), parts, { generator: generators[2] });
      else lossOf(parts, communicator.rank, step).backward();
      await parallel.sync();
      const options = isGiven ? {} : { batchSize: 8 };
      one.updateHessian(options);
      own.updateHessian(options);
      one.step();
      await own.step();
      own.zeroGrad();
    }
    tell([await bitsOf(whole, one), await bitsOf(divided, own)]);`;
  const told = await runInMemory(2, body, { bitsOf, DataParallel, hutchinson, makeNet, ShardedOptimizer, Sophia });
  for (const [whole, divided] of told as [unknown, unknown][]) expect(divided).toEqual(whole);
  expect(told).toHaveLength(2);
});

it("estimates the Hessian of Sophia by gradients on drawn labels, alone as the optimizer", async () => {
  const w = parameter([1, 2]);
  const sharded = new ShardedOptimizer(Sophia, [w], { betas: [0.5, 0.75] }, await connect());
  w.grad = tensor([1, 3]);
  sharded.updateHessian({ batchSize: 4 });
  const { hessian } = (await sharded.stateDict()).state["0"]!;
  expect((hessian as Tensor).tolist()).toEqual([1, 9]);
});

it("has no Hessian of an optimizer that has none", async () => {
  const sharded = new ShardedOptimizer(AdamW, [parameter([1])], {}, await connect());
  expectCode("UNSUPPORTED", () => sharded.updateHessian());
});

it("packs state in 8 bits with the bits of one process in a quarter of the bytes, and goes on from it", async () => {
  const body = `const { size } = communicator;
    // Nothing is left to the garbage collector, which would be counted when it comes.
    const made = (shape) => {
      const drawn = core.randn(shape, { generator: new core.Generator(1) });
      const parameter = core.parameter(drawn, { name: "a" });
      drawn.dispose();
      return parameter;
    };
    const gradient = (parameter, step) => {
      parameter.grad = core.randn(parameter.shape, { generator: new core.Generator(step) });
    };
    const [divided, whole] = [made([300, 200]), made([300, 200])];
    const sharded = new ShardedOptimizer(AdamW, [divided], { stateDType: "q8" }, communicator);
    const optimizer = new AdamW([whole], { stateDType: "q8" });
    const { device } = divided;
    const bytes = [];
    for (let step = 0; step < 4; step++) {
      for (const each of [divided, whole]) gradient(each, step);
      const before = device.memory().bytes;
      await sharded.step();
      bytes.push(device.memory().bytes - before);
      optimizer.step();
    }
    const differ = (a, b) => { const [x, y] = [a.dataSync(), b.dataSync()]; return Array.from(x, (value, i) => Math.abs(value - y[i])); };
    const moments = Object.values((await sharded.stateDict()).state)[0];
    const result = [bytes[0] / (2 * 300 * 200), Math.max(...differ(divided, whole)), moments.exp_avg.shape.join()];
    for (const shape of [[9000], [300, 200]]) {
      const [a, b] = [made(shape), made(shape)];
      const options = { lr: 0.1, stateDType: "q8" };
      const [straight, resumed] = [a, b].map((each) => new ShardedOptimizer(AdamW, [each], options, communicator));
      for (let step = 0; step < 3; step++) { gradient(a, step); await straight.step(); }
      core.noGrad(() => b.set(a));
      resumed.loadStateDict(await straight.stateDict());
      for (const [each, x] of [[straight, a], [resumed, b]]) { gradient(x, 3); await each.step(); }
      result.push(resumed.groups[0].stateDType, Math.max(...differ(a, b)));
    }
    tell(result);`;
  for (const ranks of [1, 3]) {
    const { told, error } = await runJob(ranks, body, { imports: IMPORTS });
    expect(error).toBe("");
    for (const [share, distance, ...others] of told as [number, number, ...unknown[]][]) {
      expect(Math.abs(share * ranks - 1)).toBeLessThan(0.05);
      expect(distance).toBe(0);
      expect(others).toEqual(["300,200", "q8", 0, "q8", 0]);
    }
  }
});

it("a rank keeps its part of the state, and names what differs", async () => {
  const { told, error } = await runJob(2, PART, { imports: IMPORTS });
  expect(error).toBe("");
  for (const [share, options, rules] of told as [number, string, string][]) {
    expect(Math.abs(share * 2 - 1)).toBeLessThan(0.05);
    expect(options).toMatch(/"group 0 AdamW \w+ \{"lr":0.1,.*on rank 0 and "group 0 AdamW \w+ \{"lr":1.1,/);
    expect(rules).toMatch(/"group 0 NAdam \w+ .*on rank 0 and "group 0 AdamW \w+ /);
  }
});

it("what one rank does alone before a step is named before anything has changed", async () => {
  for (const messages of await tried("faults"))
    expect(messages).toEqual(FAULTS.map(([, , message]) => ["BAD_STATE", expect.stringMatching(message), true]));
});

it("what one rank's own step throws, also one that owns nothing, is every rank's error at once", async () => {
  const body = `const failing = (params) => {
    const own = new AdamW(params, { lr: 0.1 });
    own.on("beforeStep", () => { if (params.length === 1 && communicator.rank === bad) throw thrown[bad]; });
    return own;
  };
  const thrown = [new Error("no room"), new core.OptError("OUT_OF_MEMORY", "here", "it is full.", "Wait."), "text"];
  const messages = [];
  for (var bad of [0, 1, 2]) {
    const w = core.parameter([1, 2, 3]);
    const sharded = new ShardedOptimizer(failing, [["w", w]], {}, communicator);
    w.grad = core.tensor([1, 1, 1]);
    messages.push(await sharded.step().then(() => "", (error) => [error.code, String(error.message ?? error)]));
  }
  tell(messages);`;
  const told = (await runInMemory(3, body, { ShardedOptimizer, AdamW })) as [string | null, string][][];
  const of = (rank: number, text: string) =>
    `[ShardedOptimizer] step 1 has failed on rank ${rank}: ${text} Ranks differ now: go on from a checkpoint.`;
  const elsewhere = [
    ["IO", of(0, "no room")],
    ["OUT_OF_MEMORY", of(1, "[here] it is full. Wait.")],
    ["IO", of(2, "text")],
  ];
  const own = [
    [undefined, "no room"],
    ["OUT_OF_MEMORY", "[here] it is full. Wait."],
    [undefined, "text"],
  ];
  for (const [rank, messages] of told.entries())
    expect(messages.map(([code, text]) => [code ?? undefined, text])).toEqual(
      [0, 1, 2].map((bad) => (bad === rank ? own : elsewhere)[bad]),
    );
});

it("other gradients in the first step are named before anything has changed", async () => {
  const message =
    /all ranks must agree, got "w gradient \w+" on rank 0 and "w gradient \w+" on rank 1\. .*after sync\(\)/;
  expect(await tried("first")).toEqual(new Array(2).fill(["BAD_STATE", expect.stringMatching(message), true]));
});

it("a GradScaler divides gradients, and skips steps where one overflows", async () => {
  const w = parameter([1, 2]);
  const sharded = new ShardedOptimizer(SGD, [w], { lr: 0.5 }, await connect());
  const scaler = new GradScaler({ initScale: 8, growthInterval: 1 });
  for (const factor of [1, Number.POSITIVE_INFINITY]) {
    scaler.scale(w.mul(factor).sum()).backward();
    await scaler.step(sharded);
    await scaler.update();
    sharded.zeroGrad();
    expect(w.tolist()).toEqual([0.5, 1.5]);
    expect(scaler.stepWasSkipped).toBe(factor > 1);
  }
  expect(await scaler.getScale()).toBe(8); // 16 after the first step, and halved by the second
});

describe("rejected", () => {
  const parameters = (): [string, Tensor][] => [["w", parameter([1, 2])]];
  const made = async (params: Parameters = parameters(), options = {}, Class: unknown = AdamW) =>
    new ShardedOptimizer(Class as typeof AdamW, params, options, await connect());
  it.each<[string, string, () => Promise<unknown>]>([
    ["no class", "BAD_ARGUMENT", () => made(parameters(), {}, {})],
    ["no communicator", "BAD_ARGUMENT", async () => new ShardedOptimizer(AdamW, parameters(), {}, {} as never)],
    [
      "forgotten options",
      "BAD_ARGUMENT",
      async () => new ShardedOptimizer(AdamW, parameters(), (await connect()) as never, undefined as never),
    ],
    ["a wrong option", "BAD_ARGUMENT", () => made(parameters(), { lr: -1 })],
    ["a closure of no use", "BAD_ARGUMENT", async () => (await made()).step(() => 1)],
    [
      "LBFGS without a closure",
      "BAD_ARGUMENT",
      async () => new ShardedOptimizer(LBFGS, parameters(), { maxIter: 1 }, await connect()).step(),
    ],
    [
      "a GradScaler with LBFGS",
      "UNSUPPORTED",
      async () => {
        const [[, w]] = parameters() as [[string, Tensor]];
        const sharded = new ShardedOptimizer(LBFGS, [w], {}, await connect());
        const scaler = new GradScaler();
        scaler.scale(w.mul(2).sum()).backward();
        await scaler.step(sharded as never);
      },
    ],
    [
      "weights to evaluate of LBFGS",
      "UNSUPPORTED",
      async () => new ShardedOptimizer(LBFGS, parameters(), {}, await connect()).eval(),
    ],
    ["state that does not fit", "BAD_STATE", async () => (await made()).loadStateDict({ groups: [], state: {} })],
  ])("%s", async (_, code, call) => {
    await expect(call()).rejects.toMatchObject({ code });
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

describe("options of one rank are those of the class", () => {
  it.each<Partial<BaseOptions> & GroupOptions>([
    { lr: 0.3 },
    { maximize: true },
    { regularizer: l2(0.5) },
    { clip: { value: 0.1 } },
    { clip: { norm: 0.1 } },
    { stateDType: "bf16" },
    { decay: "independent" },
    { cautious: true, mars: { gamma: 0.5 } },
    { hyperball: true, centralize: true },
  ])("%o", async (options) => {
    const communicator = await connect();
    const stepped = async (w: Tensor, optimizer: { step(): unknown }) => {
      for (const scale of [1, 3, 0.1]) {
        w.grad = tensor([scale, -2 * scale, 0.5], { shape: [3, 1] });
        await optimizer.step();
      }
      return [...w.dataSync()];
    };
    const made = () => parameter([1, -2, 3], { shape: [3, 1] });
    const [divided, whole, plain] = [made(), made(), made()];
    const actual = await stepped(divided, new ShardedOptimizer(AdamW, [divided], options, communicator));
    expect(actual).toEqual(await stepped(whole, new AdamW([whole], options)));
    expect(actual).not.toEqual(await stepped(plain, new AdamW([plain])));
  });

  it("modifications of whole parameters that are set later throw before anything changes", async () => {
    const w = parameter([1, -2]);
    const sharded = new ShardedOptimizer(AdamW, [w], {}, await connect());
    w.grad = tensor([1, 1]);
    sharded.groups[0]!.cautious = true;
    await expect(sharded.step()).rejects.toMatchObject({ code: "UNSUPPORTED" });
    expect(w.tolist()).toEqual([1, -2]);
  });

  it("lazyMode has nothing to leave alone: row-sparse gradients are rejected", async () => {
    const w = parameter([[1, 2]]);
    const sharded = new ShardedOptimizer(AdamW, [w], { lazyMode: true }, await connect());
    w.grad = rowSparse(tensor([0], { dtype: "i32" }), tensor([[1, -2]]), [1, 2]);
    await expect(sharded.step()).rejects.toMatchObject({ code: "UNSUPPORTED" });
  });

  it("zeroGrad makes zeros with setToNull: false, and contents names what it saves by a key", async () => {
    const w = parameter([1, -2], { name: "w" });
    const sharded = new ShardedOptimizer(AdamW, [w], {}, await connect());
    w.grad = tensor([1, 2]);
    await sharded.step();
    sharded.zeroGrad({ setToNull: false });
    expect(w.grad!.tolist()).toEqual([0, 0]);
    sharded.zeroGrad();
    expect(w.grad).toBe(null);
    expect(Object.keys((await sharded.contents("critic")).values)).toEqual(["critic"]);
  });
});
