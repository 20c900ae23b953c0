/** Batch norms over real processes beside one process's on all samples: outputs, running statistics, gradients, a training run. */
import { rand } from "@opt/core";
import { BatchNorm1d, Linear, Sequential } from "@opt/nn";
import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { runJob } from "../../testing/job";
import { connect, SyncBatchNorm } from "../index";

const IMPORTS = `import { SyncBatchNorm } from "${new URL("sync-batch-norm.ts", import.meta.url).href}";
import { DataParallel } from "${new URL("../data-parallel/data-parallel.ts", import.meta.url).href}";
import { BatchNorm1d, BatchNorm2d, Linear, ReLU, Sequential } from "${new URL("../../../nn/src/index.ts", import.meta.url).href}";
import { SGD } from "${new URL("../../../optimizers/sgd/src/index.ts", import.meta.url).href}";`;

const PRELUDE = `
const { rank } = communicator;
const { compile, Generator, parameter, randn } = core;
const farthest = (a, b) => { const [x, y] = [a.dataSync(), b.dataSync()]; return x.length === y.length ? x.reduce((most, value, i) => Math.max(most, Math.abs(value - y[i])), 0) : Infinity; };
const drawn = (seed) => ({ generator: new Generator(seed), dtype: "f64" });
/** Rows of each rank: the second has none. */
const begins = [0, 4, 4, 7];
const own = (x) => x.slice(begins[rank], begins[rank + 1]);
`;

const NUMBERS = `${PRELUDE}
const distances = [];
for (const [shape, make] of [[[7, 3], () => new BatchNorm1d(3, { dtype: "f64" })], [[7, 3, 2, 2], () => new BatchNorm2d(3, { dtype: "f64", momentum: null })], [[7, 3, 2, 2], () => new BatchNorm2d(3, { dtype: "f64", affine: false })]]) {
  const whole = make();
  const { momentum, weight } = whole;
  const layers = [new SyncBatchNorm(3, communicator, { dtype: "f64", momentum, affine: weight !== null }), SyncBatchNorm.convert(make(), communicator)];
  const forwards = layers.map((layer) => (x) => layer.forward(x));
  const compiled = SyncBatchNorm.convert(make(), communicator);
  layers.push(compiled);
  forwards.push(compile((x) => compiled.forward(x)));
  for (const each of [whole, ...layers]) each.weight?.set(randn([3], drawn(20)));
  for (const seed of [1, 2, 3]) {
    const [all, upstream] = [randn(shape, drawn(seed)).mul(3).add(5), randn(shape, drawn(10 + seed))];
    const x = parameter(all);
    const y = whole.forward(x);
    y.mul(upstream).mul(y).sum().backward();
    for (const [i, forward] of forwards.entries()) {
      const layer = layers[i];
      if (i === 2) { distances.push(farthest(forward(own(all)), own(y))); continue; }
      const z = parameter(own(all).clone());
      const w = forward(z);
      w.mul(own(upstream)).mul(w).sum().backward();
      distances.push(farthest(w, own(y)), farthest(z.grad, own(x.grad)));
      if (layer.weight) {
        for (const name of ["weight", "bias"]) {
          const sum = layer[name].grad.clone();
          await communicator.allReduce(sum);
          distances.push(farthest(sum, whole[name].grad));
          layer[name].grad = null;
        }
      }
    }
    if (whole.weight) for (const name of ["weight", "bias"]) whole[name].grad = null;
  }
  for (const layer of layers) for (const name of ["running_mean", "running_var", "num_batches_tracked"]) distances.push(farthest(layer[name], whole[name]));
  const x = randn(shape, drawn(7));
  for (const layer of layers.slice(0, 2)) distances.push(farthest(layer.eval().forward(own(x)), own(whole.eval().forward(x))));
}
tell(distances);`;

it("three ranks with uneven batches compute what one process does on all samples, also compiled", async () => {
  const { told, error, code } = await runJob(3, NUMBERS, { imports: IMPORTS });
  expect([code, error]).toEqual([0, ""]);
  for (const distances of told as number[][]) {
    expect(distances.length).toBeGreaterThan(60);
    expect(Math.max(...distances), String(distances)).toBeLessThan(1e-11);
  }
});

const TRAINING = `${PRELUDE}
const make = () => new Sequential(new Linear(4, 6, drawn(1)), new BatchNorm1d(6, { dtype: "f64" }), new ReLU(), new Linear(6, 2, drawn(2)));
const train = async (model, forward, sync, part) => {
  const optimizer = new SGD(model.namedParameters(), { lr: 0.1, momentum: 0.9 });
  for (let step = 0; step < 4; step++) {
    const [x, y] = [part(randn([7, 4], drawn(30 + step))), part(randn([7, 2], drawn(40 + step)))];
    const error = forward(x).sub(y);
    error.mul(error).sum().div(14).backward();
    await sync();
    optimizer.step();
    optimizer.zeroGrad();
  }
};
const whole = make();
await train(whole, (x) => whole.forward(x), async () => {}, (x) => x);
const divided = SyncBatchNorm.convert(make(), communicator);
const parallel = new DataParallel(divided, communicator, { bucketBytes: 100 });
parallel.divisor = 1;
await train(divided, (x) => parallel.forward(x), () => parallel.sync(), own);
const [a, b] = [whole.stateDict(), divided.stateDict()];
tell([Object.keys(b).join() === Object.keys(a).join(), ...Object.keys(a).map((name) => farthest(a[name], b[name]))]);`;

it("a converted model trains under DataParallel as one process does on the whole batch", async () => {
  const { told, error, code } = await runJob(3, TRAINING, { imports: IMPORTS });
  expect([code, error]).toEqual([0, ""]);
  for (const [hasNames, ...distances] of told as [boolean, ...number[]][]) {
    expect(hasNames).toBe(true);
    expect(Math.max(...distances), String(distances)).toBeLessThan(1e-11);
  }
});

it("one rank is a BatchNorm of any rank of input; what is no model, communicator or batch is rejected", async () => {
  const communicator = await connect();
  const x = rand([4, 3]);
  const sync = new SyncBatchNorm(3, communicator);
  expect([...sync.forward(x).dataSync()]).toEqual([...new BatchNorm1d(3).forward(x).dataSync()]);
  const own = new SyncBatchNorm(3, communicator, {
    eps: 0.1,
    affine: false,
    trackRunningStats: false,
    momentum: null,
    dtype: "f64",
    device: "js",
  });
  const alike = new BatchNorm1d(3, { eps: 0.1, affine: false, trackRunningStats: false, dtype: "f64" });
  const wide = x.to("f64");
  expect(own.forward(wide).tolist()).toEqual(alike.forward(wide).tolist());
  const moving = new SyncBatchNorm(3, communicator, { momentum: 0.5 });
  moving.forward(x);
  expect(moving.running_mean!.dataSync()).toAgreeWith(x.mean(0).mul(0.5).dataSync());
  const model = new Sequential(new Linear(3, 3), new BatchNorm1d(3));
  expect(SyncBatchNorm.convert(model, communicator)).toBe(model);
  expectCode("BAD_SHAPE", () => sync.forward(rand([3])));
  expectCode("BAD_ARGUMENT", () => new SyncBatchNorm(3, {} as never));
  expectCode("BAD_ARGUMENT", () => SyncBatchNorm.convert(model, null as never));
  expectCode("BAD_ARGUMENT", () => SyncBatchNorm.convert({} as Sequential, communicator));
  expectCode("BAD_ARGUMENT", () => new SyncBatchNorm(3, communicator, { momentum: 2 }));
});
