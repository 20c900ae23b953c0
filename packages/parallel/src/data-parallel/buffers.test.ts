/** Running statistics on ranks: one rank's for all, saved as the guide saves, and resumed. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AdamW } from "@opt/adam-amsgrad";
import { loadCheckpoint, optimizerContents, optimizerState, saveCheckpoint } from "@opt/checkpoint";
import { BatchNorm1d, Linear, mseLoss, ReLU, Sequential } from "@opt/nn";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runInMemory } from "../../testing/memory-job";
import { DataParallel } from "./data-parallel";

const NAMES = {
  ...{ AdamW, BatchNorm1d, DataParallel, Linear, loadCheckpoint, mseLoss },
  ...{ optimizerContents, optimizerState, ReLU, saveCheckpoint, Sequential },
};

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "opt-buffers-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What the guide's program does, with a BatchNorm; `train(from, to)` takes the batches of these steps. */
const PROGRAM = (path: string) => `
const { rank, size } = communicator;
const { Generator, randn } = core;
const make = async (seed, options) => {
  const generator = new Generator(seed);
  const model = new Sequential(new Linear(4, 8, { generator }), new BatchNorm1d(8), new ReLU(), new Linear(8, 2, { generator }));
  const parallel = new DataParallel(model, communicator, options);
  const optimizer = new AdamW(model.namedParameters());
  const train = async (from, to, isIdle = () => false) => {
    for (let step = from; step < to; step++) {
      const samples = new Generator(100 * step + rank);
      const [x, y] = [randn([8, 4], { generator: samples }), randn([8, 2], { generator: samples })];
      if (!isIdle(step)) mseLoss(parallel.forward(x), y).backward();
      await parallel.sync();
      optimizer.step();
      optimizer.zeroGrad();
    }
  };
  return { model, parallel, optimizer, train };
};
const all = (model) => Object.entries(model.stateDict()).map(([name, each]) => [name, [...each.dataSync()]]);
const path = ${JSON.stringify(path)};
const save = async ({ model, optimizer }) => {
  const { tensors, values } = optimizerContents(optimizer.stateDict());
  const layout = { mesh: { shape: [size], axes: ["rank"] }, tensors: { "*": "replicate" } };
  const contents = { step: 10, tensors: { ...model.stateDict(), ...tensors }, values };
  await saveCheckpoint(path, contents, { communicator, layout, checkReplicas: true, overwrite: true });
};
`;

it("two ranks train with BatchNorm, save by the guide's lines and go on", async () => {
  const body = `${PROGRAM(join(folder, "run"))}
    const through = await make(1);
    await through.train(0, 5);
    await save(through);
    await through.train(5, 8);
    const resumed = await make(2);
    const loaded = await loadCheckpoint(path);
    const { model, optimizer } = resumed;
    model.loadStateDict(Object.fromEntries(Object.keys(model.stateDict()).map((name) => [name, loaded.tensors[name]])));
    optimizer.loadStateDict(optimizerState(loaded));
    await resumed.train(5, 8);
    tell([all(through.model), all(resumed.model)]);`;
  const told = await runInMemory(2, body, NAMES);
  const [[through, resumed], other] = told as [[[string, number[]][], unknown], unknown];
  expect(resumed).toEqual(through);
  expect(other).toEqual([through, through]);
  expect(through).toContainEqual(["1.num_batches_tracked", [8]]);
});

it("buffers come from rank 0, or the first rank that had samples; where they stay each rank's own, saving says so", async () => {
  const body = `${PROGRAM(join(folder, "own"))}
    const means = ({ model }) => [...model.stateDict()["1.running_mean"].dataSync()];
    const first = await make(1);
    await first.train(0, 1, () => rank === 0);
    const late = means(first);
    await first.train(1, 2, () => rank === 2);
    const own = await make(1, { broadcastBuffers: false });
    await own.train(0, 1);
    const rejected = await save(own).then(() => "saved", (error) => error.message);
    tell({ late, both: means(first), own: means(own), rejected });`;
  const told = await runInMemory(3, body, NAMES);
  const ranks = told as { late: number[]; both: number[]; own: number[]; rejected: string }[];
  const [zero, one, two] = ranks as [(typeof ranks)[0], (typeof ranks)[0], (typeof ranks)[0]];
  expect([zero.late, two.late]).toEqual([one.own, one.own]);
  expect([one.both, two.both]).toEqual([zero.both, zero.both]);
  expect(one.own).not.toEqual(zero.own);
  for (const { rejected } of ranks) expect(rejected).toMatch(/1\.running_(mean|var)/);
});

it("buffers that different ranks wrote to come all from the first of these ranks", async () => {
  const body = `${PROGRAM("")}
    const { model, parallel } = await make(1);
    const buffers = model.namedBuffers().map(([, buffer]) => buffer);
    if (rank > 0) for (const buffer of buffers.slice(0, rank)) buffer.set(buffer.add(rank));
    await parallel.sync();
    tell(buffers.map((buffer) => buffer.dataSync()[0]));`;
  const [zero, ...others] = await runInMemory(3, body, NAMES);
  expect(zero).toEqual([1, 1, 0]);
  expect(others).toEqual([zero, zero]);
});
