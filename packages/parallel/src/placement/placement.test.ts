/** What looks across divided tensors, beside the whole model in one process: norms, scalers, optimizers of matrices, layouts. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadCheckpoint } from "@opt/checkpoint";
import { Generator } from "@opt/core";
import { Linear } from "@opt/nn";
import { triesAll } from "@opt/testkit";
import { afterAll, describe, expect, it } from "vitest";
import { jobOf, runJob, sharedJobs } from "../../testing/job";
import { WATCH_MEMORY } from "../../testing/peak";

const source = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
const IMPORTS = `import { DataParallel } from ${source("../data-parallel/data-parallel.ts")};
import { FullyShardedDataParallel } from ${source("../fully-sharded/fully-sharded.ts")};
import { ColumnParallelLinear, RowParallelLinear } from ${source("../tensor-parallel/layers.ts")};
import { ShardedOptimizer } from ${source("../sharded/sharded-optimizer.ts")};
import { layoutOf } from ${source("../layout-of.ts")};
import { Linear, Module, ModuleList, ReLU, Sequential } from ${source("../../../nn/src/index.ts")};
import { AdamW } from ${source("../../../optimizers/adam-amsgrad/src/index.ts")};
import { Adafactor } from ${source("../../../optimizers/adafactor/src/index.ts")};
import { Lamb } from ${source("../../../optimizers/lamb/src/index.ts")};
import { Muon } from ${source("../../../optimizers/muon/src/index.ts")};
import { Prodigy } from ${source("../../../optimizers/prodigy/src/index.ts")};
import { Kron } from ${source("../../../optimizers/kron/src/index.ts")};
import { SGD } from ${source("../../../optimizers/sgd/src/index.ts")};
import { Shampoo } from ${source("../../../optimizers/shampoo/src/index.ts")};
import { SOAP } from ${source("../../../optimizers/soap/src/index.ts")};
import { LBFGS } from ${source("../../../optimizers/lbfgs/src/index.ts")};
import { loadCheckpoint, optimizerContents, optimizerState, saveCheckpoint } from ${source("../../../checkpoint/src/index.ts")};
import "${new URL("../../../kernels-cpu/src/index.ts", import.meta.url).href}";`;

/** A model of divided layers, the whole one with the same weights, and how far they are apart. */
const MODELS = `
const drawn = (seed) => ({ generator: new core.Generator(seed) });
const wide = (axis, width = 17) => new Sequential(
  new ColumnParallelLinear(4, width, axis, drawn(1)), new ReLU(), new RowParallelLinear(width, 3, axis, drawn(2)));
const whole = (width = 17) => new Sequential(new Linear(4, width, drawn(1)), new ReLU(), new Linear(width, 3, drawn(2)));
const x = core.randn([8, 4], drawn(3));
const backward = (net, scale = 1) => net.forward(x).pow(2).sum().mul(scale).backward();
const parts = (n, size, rank) => [Math.floor(n / size) * rank + Math.min(rank, n % size), Math.floor(n / size) * (rank + 1) + Math.min(rank + 1, n % size)];
/** This rank's part of a whole tensor, by what the divided one says of itself. */
const partOf = (tensor, { placement }) => (placement?.cuts ?? []).reduce((rest, { axis, dim }) => rest.slice(...parts(rest.shape[dim], axis.size, axis.index), dim), tensor);
const farthest = (a, b) => { const [p, q] = [a.dataSync(), b.dataSync()]; return p.reduce((most, value, i) => Math.max(most, Math.abs(value - q[i])), 0); };
const apart = (divided, net) => Math.max(...divided.parameters().map((each, i) => farthest(each.detach(), partOf(net.parameters()[i].detach(), each))));
const words = (divided, net) => divided.every(([, each], i) => Buffer.compare(each.bytesSync(), partOf(net.parameters()[i].detach(), each).bytesSync()) === 0);
`;

const folder = mkdtempSync(join(tmpdir(), "opt-placement-"));

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const jobs = sharedJobs({ imports: IMPORTS });

/** A test of what each rank tells. */
function tells<Told>(name: string, size: number, body: string, check: (found: Told[]) => void | Promise<void>): void {
  const found = jobs<Told>(size, MODELS + body);
  it(name, async () => check(await found()));
}

describe.each(triesAll ? [2, 3, 4] : [2])("tensor parallelism over %d ranks", (size) => {
  tells<[number, number, number, number][]>(
    "clips by the norm of the whole model",
    size,
    `const results = [];
      for (const device of ["js", "cpu"]) {
        await core.init(device);
        const x = core.randn([8, 4], drawn(3));
        for (const clip of [(net) => core.clipGradNorm(net.parameters(), 0.5), (net) => core.clipGradNorm(net.parameters(), 0.5, { normType: 1 })]) {
          const [divided, net] = [wide(communicator), whole()];
          for (const each of [divided, net]) each.forward(x).pow(2).sum().backward();
          const [mine, right] = [clip(divided).item(), clip(net).item()];
          results.push([await mine, await right, Math.max(...divided.parameters().map((each, i) => farthest(each.grad, partOf(net.parameters()[i].grad, each))))]);
        }
      }
      tell(results);`,
    (found) => {
      for (const results of found)
        for (const [mine, right, distance] of results) {
          expect(mine).toBeCloseTo(right, 4);
          expect(distance).toBeLessThan(1e-6);
        }
      expect(new Set(found.map((results) => JSON.stringify(results.map(([mine]) => mine)))).size).toBe(1);
    },
  );

  tells<Record<string, number>>(
    "trains with every optimizer that looks across a matrix, and with limits of norms",
    size,
    `const matrices = (net) => net.parameters().filter(({ shape }) => shape.length === 2);
      const makers = {
        clip: (net) => new SGD(net.parameters(), { lr: 0.1, momentum: 0.9, clip: { norm: 0.5 } }),
        each: (net) => new SGD(net.parameters(), { lr: 0.1 }),
        muon: (net) => new Muon(matrices(net), { lr: 0.02 }),
        lamb: (net) => new Lamb(net.parameters(), { lr: 0.02, weightDecay: 0.1 }),
        adafactor: (net) => new Adafactor(net.parameters(), { lr: 0.02 }),
      };
      const results = {};
      for (const [name, make] of Object.entries(makers)) {
        const [divided, net] = [wide(communicator), whole()];
        const optimizers = [make(divided), make(net)];
        for (let step = 0; step < 4; step++) {
          for (const [k, each] of [divided, net].entries()) {
            optimizers[k].zeroGrad();
            backward(each);
            if (name === "each") core.clipGradNormEach(each.parameters(), 0.1);
            optimizers[k].step();
          }
        }
        results[name] = apart(divided, net);
      }
      tell(results);`,
    (found) => {
      for (const results of found)
        for (const [name, distance] of Object.entries(results))
          expect(distance, name).toBeLessThan(name === "muon" ? 1e-3 : 1e-5);
    },
  );

  tells<[boolean, boolean, number]>(
    "skips a step on all ranks where one rank's part overflows",
    size,
    `const net = wide(communicator);
      const optimizer = new SGD(net.parameters(), { lr: 0.1 });
      const scaler = new core.GradScaler({ initScale: 8 });
      const step = (isBad) => {
        optimizer.zeroGrad();
        scaler.scale(net.forward(x).pow(2).sum()).backward();
        if (isBad && communicator.rank === 1) net.parameters()[0].grad = core.full(net.parameters()[0].shape, Infinity);
        scaler.step(optimizer);
        scaler.update();
        return scaler.stepWasSkipped;
      };
      tell([step(true), step(false), scaler.stateDict().scale]);`,
    (found) => {
      expect(found).toEqual(new Array(size).fill([true, false, 4]));
    },
  );
});

describe.each(triesAll ? [2, 3, 4, 8] : [3])("FullyShardedDataParallel over %d ranks", (size) => {
  tells<Record<string, boolean>>(
    "has the words of one process with optimizers of whole matrices, and clips as it does",
    size,
    `const matrices = (list) => list.filter(([, { shape }]) => shape.length === 2);
      const makers = {
        muon: (list) => new Muon(matrices(list), { lr: 0.02 }),
        lamb: (list) => new Lamb(list, { lr: 0.02, weightDecay: 0.1 }),
        prodigy: (list) => new Prodigy(list, { d0: 0.01 }),
        soap: (list) => new SOAP(list, { preconditionFrequency: 2 }),
        adafactor: (list) => new Adafactor(list, { lr: 0.02 }),
        clip: (list) => new AdamW(list, { lr: 0.01, clip: { norm: 0.1 } }),
        function: (list) => new AdamW(list, { lr: 0.01 }),
      };
      const results = {};
      for (const [name, make] of Object.entries(makers)) {
        const [divided, net] = [whole(), whole()];
        const parallel = new FullyShardedDataParallel(divided, communicator);
        const optimizers = [make(parallel.namedParameters()), make(net.namedParameters())];
        for (let step = 0; step < 4; step++) {
          for (const each of optimizers) each.zeroGrad();
          backward(parallel);
          await parallel.sync();
          // W equal gradients, added one by one and divided once.
          backward(net);
          for (const each of net.parameters()) {
            let sum = each.grad;
            for (let k = 1; k < communicator.size; k++) sum = sum.add(each.grad);
            each.grad = sum.div(communicator.size);
          }
          if (name === "function") for (const each of [parallel, net]) core.clipGradNorm(each.parameters(), 0.1);
          for (const each of optimizers) each.step();
        }
        results[name] = words(parallel.namedParameters(), net);
        parallel.dispose();
      }
      tell(results);`,
    (found) => {
      for (const results of found) expect(new Set(Object.values(results))).toEqual(new Set([true]));
    },
  );
});

tells<Record<string, [boolean, number, number]>>(
  "parts of parts have the words of one process with every optimizer of whole parameters, and one rank has state of other shapes",
  4,
  `const grid = mesh(communicator, { data: 2, model: 2 });
    const options = { Adafactor: {}, Kron: {}, Lamb: {}, Prodigy: { d0: 0.01 }, Shampoo: { preconditionFrequency: 2 }, SOAP: { preconditionFrequency: 2 } };
    const results = {};
    for (const [name, Class] of Object.entries({ Adafactor, Kron, Lamb, Prodigy, Shampoo, SOAP })) {
      const [net, right] = [wide(grid.axis("model")), whole()];
      const parallel = new FullyShardedDataParallel(net, grid.axis("data"));
      const optimizers = [new Class(parallel.namedParameters(), options[name]), new Class(right.namedParameters(), options[name])];
      for (let step = 0; step < 4; step++) {
        for (const [i, part] of parallel.parameters().entries()) {
          const each = right.parameters()[i];
          // The first step leaves one out, so that it has a launch of its own later.
          if (step === 0 && i === 2) continue;
          each.grad = core.randn(each.shape, drawn(10 * step + i));
          part.grad = partOf(each.grad, part);
        }
        for (const each of optimizers) each.step();
      }
      const sizes = optimizers.map((optimizer) => Object.values(optimizer.stateDict().state).flatMap((entry) => Object.values(entry))
        .reduce((sum, value) => sum + (value.size ?? 0), 0));
      results[name] = [words(parallel.namedParameters(), right), ...sizes];
      parallel.dispose();
    }
    tell(results);`,
  (found) => {
    for (const name of Object.keys(found[0]!)) {
      const all = found.map((results) => results[name]!);
      expect(
        all.map(([areEqual]) => areEqual),
        name,
      ).toEqual([true, true, true, true]);
      const sizes = all.map(([, own]) => own);
      const [, , alone] = all[0]!;
      // Of 131 elements the 3 of the last bias are whole on both ranks of an axis, or on all.
      expect(
        sizes.reduce((a, b) => a + b),
        name,
      ).toBeLessThan(alone * 1.2);
    }
  },
);

tells<boolean[]>(
  "SAM, wrappers and modifications of parts of parts have the words of one process, before and after a load",
  4,
  `const grid = mesh(communicator, { data: 2, model: 2 });
    const isMatrix = (_, { shape }) => shape.length === 2;
    const makers = [
      (list) => new core.SAM(new AdamW(list, { lr: 0.1 }), { rho: 0.5 }),
      (list) => new core.SAM(new AdamW(list, { lr: 0.1 }), { rho: 0.5, adaptive: true }),
      (list) => new core.Lookahead(new SOAP(list, { preconditionFrequency: 2, clip: { norm: 0.5 } }), { k: 2 }),
      (list) => core.scheduleFree(new SGD(list, { lr: 0.1, clip: { norm: 0.5 } })),
      (list) => core.combine(list, { matrices: Muon, rest: AdamW }, { matrices: { clip: { norm: 0.5 } }, rest: { clip: { norm: 0.5 } } }, { isMatrix }),
      (list) => new AdamW(list, { lr: 0.1, mars: { gamma: 0.5 }, centralize: true, cautious: true, hyperball: true }),
    ];
    // Averages and copies are divided as their parameter is.
    const isPlaced = ({ state }, list) => list.every(([name, { placement }]) => Object.entries(state[name]).every(
      ([key, value]) => !/^exp_avg|^slow|_z$/.test(key) || String(value.placement?.shape) === String(placement.shape)));
    const results = [];
    for (const make of makers) {
      const [net, right] = [wide(grid.axis("model")), whole()];
      const parallel = new FullyShardedDataParallel(net, grid.axis("data"));
      const [own, alone] = [make(parallel.namedParameters()), make(right.namedParameters())];
      for (let step = 0; step < 4; step++) {
        const drawnFor = (i) => core.randn(right.parameters()[i].shape, drawn(10 * step + i));
        // Gradients depend on weights, element by element.
        own.step(() => parallel.parameters().forEach((part, i) => { part.grad = core.noGrad(() => part.mul(partOf(drawnFor(i), part))); }));
        alone.step(() => right.parameters().forEach((each, i) => { each.grad = core.noGrad(() => each.mul(drawnFor(i))); }));
        if (step === 1) for (const each of [own, alone]) each.loadStateDict(each.stateDict());
      }
      results.push(words(parallel.namedParameters(), right) && isPlaced(own.stateDict(), parallel.namedParameters()));
      parallel.dispose();
    }
    tell(results);`,
  (found) => {
    for (const results of found) expect(results).toEqual([true, true, true, true, true, true]);
  },
);

tells<Record<string, { products: number[]; state: number[] }>>(
  "a matrix is orthogonalized by one of 4 ranks, and each has a quarter of the state of matrices",
  4,
  `const layers = () => new Sequential(...Array.from({ length: 8 }, (_, i) => new Linear(32, 32, { ...drawn(i), bias: false })));
    const { device } = core.zeros([1]);
    const launch = device.launch.bind(device);
    let products = 0;
    device.launch = (given, ...more) => { if (given.kind === "matmul") products += given.batch; return launch(given, ...more); };
    const counted = async (optimizer) => {
      products = 0;
      await optimizer.step();
      return products;
    };
    const extent = (shape) => shape.reduce((a, b) => a * b, 1);
    const sizeOf = async (optimizer) => {
      const shapes = optimizer instanceof ShardedOptimizer
        ? Object.values((await optimizer.contents()).tensors).flatMap(({ boxes }) => boxes.map(({ size }) => size))
        : Object.values(optimizer.stateDict().state).flatMap((state) => Object.values(state).flatMap(({ shape }) => shape ? [shape] : []));
      return shapes.reduce((sum, shape) => sum + extent(shape), 0);
    };
    const results = {};
    for (const Rule of [Muon, Lamb, Adafactor]) {
      const [net, zero, alone] = [layers(), layers(), layers()];
      const parallel = new FullyShardedDataParallel(net, communicator);
      for (const each of [parallel, zero, alone]) each.forward(core.ones([2, 32])).sum().backward();
      await parallel.sync();
      const optimizers = [
        new Rule(parallel.namedParameters(), { lr: 0.02 }),
        new ShardedOptimizer(Rule, zero.namedParameters(), { lr: 0.02 }, communicator),
        new Rule(alone.namedParameters(), { lr: 0.02 }),
      ];
      const result = { products: [], state: [] };
      for (const optimizer of optimizers) {
        result.products.push(await counted(optimizer));
        result.state.push(await sizeOf(optimizer));
      }
      results[Rule.name] = result;
    }
    delete device.launch;
    tell(results);`,
  (found) => {
    for (const results of found) {
      // Three products in each of five iterations, of two of eight matrices or of all.
      expect(results.Muon!.products).toEqual([2 * 15, 2 * 15, 8 * 15]);
      for (const [name, { state }] of Object.entries(results)) {
        const [fully, sharded, alone] = state as [number, number, number];
        for (const own of [fully, sharded]) expect(Math.abs(own - alone / 4), name).toBeLessThanOrEqual(32 * 32);
      }
      const { Muon, Lamb } = results;
      for (const { state } of [Muon!, Lamb!]) expect(state.slice(0, 2)).toEqual([state[2]! / 4, state[2]! / 4]);
    }
  },
);

tells<number[]>(
  "nested cuts of uneven rows save as they are, and load whole",
  4,
  `const grid = mesh(communicator, { data: 2, model: 2 });
  const net = new Sequential(new ColumnParallelLinear(4, 10, grid.axis("model"), { ...drawn(1), gatherOutput: true }));
  const parallel = new FullyShardedDataParallel(net, grid.axis("data"));
  const optimizer = new AdamW(parallel.namedParameters());
  parallel.forward(x).sum().backward();
  await parallel.sync();
  core.clipGradNorm(parallel.parameters(), 1);
  const tensors = parallel.stateDict();
  await saveCheckpoint(${JSON.stringify(join(folder, "nested"))}, { step: 1, tensors }, { communicator, layout: layoutOf(net, grid) });
  tell(Object.values(tensors).map(({ shape }) => shape[0]));`,
  async () => {
    const { tensors } = await loadCheckpoint(join(folder, "nested"));
    const right = new Linear(4, 10, { generator: new Generator(1) });
    expect([...tensors["0.weight"]!.dataSync()]).toEqual([...right.weight.dataSync()]);
    expect([...tensors["0.bias"]!.dataSync()]).toEqual([...right.bias!.dataSync()]);
  },
);

/** A divided model in 16 and 32 bits that trains by an optimizer of whole parameters. */
const divided = (optimizer: string, dtype: string) => `
const net = whole("${optimizer}" === "LBFGS" ? 300 : 17);
if ("${dtype}" !== "f32") net.to("${dtype}");
const input = x.to("${dtype}");
const parallel = new FullyShardedDataParallel(net, communicator);
parallel.divisor = 1; // the first rank alone has gradients, so that all numbers of ranks add the same
const matrices = (list) => "${optimizer}" === "Muon" ? list.filter(([, { shape }]) => shape.length === 2) : list;
const options = "${optimizer}" === "LBFGS" ? { lr: 0.02, maxIter: 4 } : { lr: 0.02 };
const optimizer = new ${optimizer}(matrices(parallel.namedParameters()), options);
const train = async (steps) => {
  for (let step = 0; step < steps; step++) {
    const closure = async () => {
      optimizer.zeroGrad();
      const loss = parallel.forward(input).to("f32").pow(2).sum();
      loss.mul(communicator.rank === 0 ? 1 : 0).backward();
      await parallel.sync();
      return loss;
    };
    if (optimizer instanceof LBFGS) await optimizer.step(closure);
    else optimizer.step(void (await closure()));
  }
};
const { createHash } = await import("node:crypto");
const tellWeights = async () => {
  const hash = createHash("sha256");
  for (const [name, part] of parallel.namedParameters())
    hash.update((name in parallel.layout.tensors ? await communicator.allGather(part) : part).bytesSync());
  tell(hash.digest("hex"));
};`;

const PAIRS = ["Muon", "Lamb", "Adafactor"].flatMap((optimizer) =>
  ["f32", "bf16"].map((dtype) => [optimizer, dtype] as const),
);
PAIRS.push(["LBFGS", "f32"], ["SOAP", "f32"], ["Prodigy", "f32"]);

const TRIED = triesAll ? PAIRS : PAIRS.slice(-5);

describe("saved on 2 ranks, goes on on other numbers of ranks with the same words", () => {
  const nameOf = ([optimizer, dtype]: (typeof TRIED)[number]) => `${optimizer}_${dtype}`;
  const bodies = (program: (path: string) => string) =>
    Object.fromEntries(
      TRIED.map((each) => {
        const path = JSON.stringify(join(folder, nameOf(each)));
        return [nameOf(each), `${MODELS}${divided(...each)}${program(path)}`];
      }),
    );
  const options = { imports: IMPORTS };
  const saved = jobOf(
    2,
    bodies(
      (path) => `
      await train(2);
      const { tensors, values } = optimizerContents(optimizer.stateDict());
      await saveCheckpoint(${path}, { step: 2, tensors: { ...parallel.stateDict(), ...tensors }, values }, { communicator, layout: parallel.layout });
      await train(2);
      await tellWeights();`,
    ),
    options,
  );
  const resume = bodies(
    (path) => `
      const loaded = await loadCheckpoint(${path}, { layout: parallel.layout, rank: communicator.rank });
      parallel.loadStateDict(loaded.tensors);
      optimizer.loadStateDict(optimizerState(loaded));
      await train(2);
      await tellWeights();`,
  );
  const resumed = (triesAll ? [1, 3, 4, 8] : [1, 3]).map((size) => [size, jobOf(size, resume, options)] as const);

  it.each(TRIED)("%s of %s", async (...pair) => {
    const [words] = await saved(nameOf(pair));
    expect(words).toMatch(/^[0-9a-f]{64}$/);
    for (const [size, job] of resumed) expect(await job(nameOf(pair))).toEqual(new Array(size).fill(words));
  });
});

/** Steps of LBFGS on parts, and on the whole model. */
const SEARCHES = `
const OPTIONS = [{ lr: 0.01, maxIter: 4, historySize: 2 }, { lineSearch: "strongWolfe", maxIter: 4 }];
const batch = (rank) => core.randn([8, 4], drawn(10 + rank));
const closureOf = (optimizer, net, ranks, sync) => async () => {
  optimizer.zeroGrad();
  const losses = ranks.map((rank) => {
    const loss = net.forward(batch(rank)).pow(2).mean();
    loss.backward();
    return loss;
  });
  await sync();
  return losses.length === 1 ? losses[0] : losses.reduce((sum, loss) => sum + loss.dataSync()[0], 0) / losses.length;
};
/** Steps of the whole model, which has the samples of all ranks. */
const closureOfAll = (optimizer, net, ranks) => closureOf(optimizer, net, [...Array(ranks).keys()], () => {
  for (const each of net.parameters()) each.grad = each.grad.div(ranks);
});
const sizesOf = async (optimizer) => {
  const { tensors } = optimizer instanceof LBFGS ? optimizerContents(optimizer.stateDict()) : await optimizer.contents();
  return Object.values(tensors).map(({ tensor }) => tensor.size);
};`;

for (const size of triesAll ? [2, 3, 4, 8] : [2])
  tells<[boolean, number[]][]>(
    `LBFGS on ${size} ranks has the words of one, and each its part of vectors`,
    size,
    `${SEARCHES}
    const results = [];
    for (const [device, options, Parallel] of [["cpu", OPTIONS[0], FullyShardedDataParallel], ["js", OPTIONS[1], FullyShardedDataParallel], ["js", OPTIONS[1], DataParallel]]) {
      await core.init(device);
      const [net, right] = [whole(300), whole(300)];
      const parallel = new Parallel(net, communicator);
      const optimizer = Parallel === DataParallel
        ? new ShardedOptimizer(LBFGS, net.namedParameters(), options, communicator)
        : new LBFGS(parallel.namedParameters(), options);
      const other = new LBFGS(right.namedParameters(), options);
      for (let step = 0; step < 2; step++) {
        await optimizer.step(closureOf(optimizer, parallel, [communicator.rank], () => parallel.sync()));
        await other.step(closureOfAll(other, right, communicator.size));
      }
      const trained = (Parallel === DataParallel ? net : parallel).namedParameters();
      results.push([words(trained, right), await sizesOf(optimizer)]);
    }
    tell(results);`,
    (found) => {
      const length = 4 * 300 + 300 + 300 * 3 + 3;
      for (const [run, [areEqual, vectors]] of found[0]!.entries()) {
        expect(areEqual).toBe(true);
        for (const [i] of vectors.entries()) {
          const own = found.map((results) => results[run]![1][i]!);
          expect(own.reduce((a, b) => a + b)).toBe(length);
          expect(Math.max(...own)).toBeLessThanOrEqual(length / size + 256);
        }
      }
      for (const results of found) expect(results.map(([areEqual]) => areEqual)).toEqual([true, true, true]);
    },
  );

tells<boolean[]>(
  "LBFGS searches by the loss of all ranks, where each of them has all of the model",
  2,
  `${SEARCHES}
    const results = [];
    for (const parallelOf of [(net) => new DataParallel(net, communicator), (net) => new FullyShardedDataParallel(net, communicator, { shardOver: 1 })]) {
      const [net, right] = [whole(30), whole(30)];
      const parallel = parallelOf(net);
      const [optimizer, other] = [new LBFGS(net.namedParameters(), OPTIONS[1]), new LBFGS(right.namedParameters(), OPTIONS[1])];
      for (let step = 0; step < 2; step++) {
        await optimizer.step(closureOf(optimizer, parallel, [communicator.rank], () => parallel.sync()));
        await other.step(closureOfAll(other, right, 2));
      }
      results.push(words(net.namedParameters(), right));
    }
    tell(results);`,
  (found) =>
    expect(found).toEqual([
      [true, true],
      [true, true],
    ]),
);

tells<number[]>(
  "LBFGS steps divided layers, also of a model in parts",
  4,
  `${SEARCHES}
    const grid = mesh(communicator, { data: 2, model: 2 });
    const results = [];
    for (const options of OPTIONS) {
      const [net, right] = [wide(grid.axis("model"), 300), whole(300)];
      const parallel = new FullyShardedDataParallel(net, grid.axis("data"));
      const [optimizer, other] = [new LBFGS(parallel.namedParameters(), options), new LBFGS(right.namedParameters(), options)];
      await optimizer.step(closureOf(optimizer, parallel, [grid.axis("data").rank], () => parallel.sync()));
      await other.step(closureOfAll(other, right, 2));
      results.push(apart(parallel, right), (await sizesOf(optimizer))[0]);
    }
    tell(results);`,
  (found) => {
    for (const [first, , second] of found) expect([first! < 1e-6, second! < 1e-6]).toEqual([true, true]);
    expect(found.map(([, length]) => length)).toEqual([768, 768, 512, 355]); // 10 blocks of 256, the last one is short
  },
);

tells<[string, string, boolean, number][]>(
  "a compiled step of divided layers exchanges their parts in each run",
  2,
  `const results = [];
    for (const device of ["js", "cpu"]) {
      await core.init(device);
      const inputs = Array.from({ length: 7 }, (_, i) => core.randn([8, 4], drawn(i)));
      for (const Rule of [AdamW, Muon, Lamb, Adafactor]) {
        const run = (isCompiled) => {
          const net = wide(communicator);
          const matrices = net.namedParameters().filter(([, { shape }]) => shape.length === 2);
          const optimizer = new Rule(Rule === Muon ? matrices : net.namedParameters(), { lr: 0.01 });
          const scaler = new core.GradScaler({ initScale: 8, growthInterval: 2 });
          const body = (x, factor) => {
            const loss = net.forward(x).pow(2).sum();
            // A gradient that overflows on the second rank alone.
            scaler.scale(loss.add(net.parameters()[0].sum().mul(factor))).backward();
            scaler.unscale(optimizer);
            const norm = core.clipGradNorm(net.parameters(), 0.5);
            scaler.step(optimizer);
            scaler.update();
            for (const each of net.parameters()) each.grad = null;
            return core.concat([loss.detach().reshape([1]), norm.reshape([1])]);
          };
          const step = isCompiled ? core.compile(body, { check: "never" }) : (...args) => core.tidy(() => body(...args));
          const seen = inputs.map((x, i) => {
            const factor = core.tensor(i === 4 && communicator.rank === 1 ? Infinity : 0);
            return [...step(x, factor).dataSync(), scaler.stepWasSkipped, scaler.getScale()];
          });
          const launches = isCompiled ? step.explain().launches : 0;
          return [JSON.stringify(seen), net.parameters().map((each) => Buffer.from(each.bytesSync()).toString("hex")).join(), launches];
        };
        const [eager, compiled] = [run(false), run(true)];
        results.push([eager[0], compiled[0], eager[1] === compiled[1], compiled[2]]);
      }
    }
    tell(results);`,
  (found) => {
    for (const results of found)
      for (const [eager, compiled, isSame, launches] of results) {
        expect(compiled).toBe(eager);
        const skipped = (JSON.parse(eager) as [number, number, boolean, number][]).map((step) => step[2]);
        expect(skipped).toEqual([false, false, false, false, true, false, false]);
        expect([isSame, launches > 0]).toEqual([true, true]);
      }
  },
);

tells<number[]>(
  "units may be lists of modules, classes and modules in a ModuleList",
  2,
  `class Block extends Module {
      fc = new Linear(8, 8, { ...drawn(1), bias: false });
      forward(x) { return this.fc.forward(x).relu(); }
    }
    class Net extends Module {
      blocks = new ModuleList(Array.from({ length: 4 }, () => new Block()));
      forward(x) { return [...this.blocks].reduce((y, block) => block.forward(y), x); }
    }
    const counts = [];
    for (const units of [undefined, [Block], (net) => [...net.blocks], (net) => [net.blocks]]) {
      const net = new Net();
      const chosen = typeof units === "function" ? units(net) : units;
      const parallel = new FullyShardedDataParallel(net, communicator, chosen && { units: chosen });
      const before = communicator.traffic.messages;
      core.noGrad(() => parallel.forward(core.ones([1, 8])));
      await parallel.sync();
      counts.push(communicator.traffic.messages - before);
      parallel.dispose();
    }
    tell(counts);`,
  (found) => {
    for (const counts of found) expect(new Set(counts).size).toBe(1);
  },
);

it("a ModuleList of 8 equal blocks on 4 ranks takes at most 0.55 of the whole, and a 0-dim parameter is clipped", async () => {
  const layer = 4 * 256 * 256;
  // In processes of its own, which have no other tensors.
  const job = await runJob(
    4,
    `${MODELS}${WATCH_MEMORY} await core.init("cpu");
    class Net extends Module {
      blocks = new ModuleList(Array.from({ length: 8 }, (_, i) => new Linear(256, 256, { ...drawn(i), bias: false })));
      scale = core.parameter(2);
      forward(x) { return [...this.blocks].reduce((y, block) => block.forward(y), x).mul(this.scale); }
    }
    const parallel = new FullyShardedDataParallel(new Net(), communicator);
    const optimizer = new AdamW(parallel.namedParameters());
    const peakOf = watchMemory(parallel.parameters()[0].device);
    let norm = 0;
    for (let step = 0; step < 3; step++) {
      core.tidy(() => parallel.forward(core.ones([1, 256])).sum().backward());
      await parallel.sync();
      norm = core.tidy(() => core.clipGradNorm(parallel.parameters(), 1).dataSync()[0]);
      optimizer.step();
      optimizer.zeroGrad();
    }
    tell([peakOf(), norm, Math.min(...parallel.parameters().map(({ size }) => size))]);`,
    { imports: IMPORTS },
  );
  expect([job.code, job.error]).toEqual([0, ""]);
  const found = job.told as [number, number, number][];
  for (const [peak, norm, size] of found) {
    expect(peak / (4 * 8 * layer)).toBeLessThan(0.55);
    expect([norm, size]).toEqual([found[0]![1], 1]);
    expect(norm).toBeGreaterThan(0);
  }
});
