/** W ranks are `accumulate: W`, however samples are cut. Most are ranks of one process: others are in `ranks.test.ts`. */

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { AdamW } from "@opt/adam-amsgrad";
import { concat, Generator, GradScaler, init, type Tensor, where } from "@opt/core";
import { DataLoader, TensorDataset } from "@opt/data";
import { crossEntropy, Linear, ReLU, Sequential } from "@opt/nn";
import { type Communicator, DataParallel } from "@opt/parallel";
import { triesAll } from "@opt/testkit";
import { bundled, optRun } from "@opt/testkit/bundled";
import { describe, expect, it } from "vitest";
import { memoryRanks } from "../../../parallel/testing/memory-ranks";
import { renamed } from "../../../parallel/testing/told";
import type { Batch } from "../../testing/runs";
import { fit } from "../fit";
import type { FitOptions } from "./options";

await init("js");

const RANKS = 3;
const ROWS = 41; // 14 of each rank, in batches of 4: the last one has 2
const generator = new Generator(2);
const inputs = Float32Array.from({ length: ROWS * 6 }, () => generator.nextFloat() - 0.5);
const labels = Int32Array.from({ length: ROWS }, () => Math.floor(generator.nextFloat() * 4) - 1); // -1 is padding
const dataset = new TensorDataset({ data: inputs, shape: [ROWS, 6] }, { data: labels, shape: [ROWS] });
const loader = () =>
  new DataLoader<[Tensor, Tensor], Batch>(dataset as never, {
    batchSize: 4,
    shuffle: true,
    generator: new Generator(4),
  });

/** Its batches have one to four rows. */
const collated = () =>
  new DataLoader<number, Batch>(
    Array.from({ length: ROWS }, (_, i) => i),
    { batchSize: 4, collate: (all) => dataset.batch(Int32Array.from(all.slice(0, 1 + (all[0]! % 4)))) as Batch },
  );

const sharesOf = (whole: () => { shard(ranks: object, how: object): unknown }) =>
  Array.from({ length: RANKS }, (_, rank) =>
    Array.from(
      whole().shard({ rank, size: RANKS }, { even: true }) as Iterable<Batch>,
      ([x, y]): Batch => [x.clone(), y.clone()],
    ),
  );

/** Batches of each rank: of one epoch, or of other sizes on each rank. */
const ofRanks: Record<"alike" | "own" | "collated", Batch[][]> = {
  alike: sharesOf(loader as never),
  collated: sharesOf(collated as never),
  own: Array.from({ length: RANKS }, (_, rank) =>
    [0, 1, 2, 3].map((i): Batch => {
      const rows = Int32Array.from({ length: 1 + ((i + 2 * rank) % 5) }, (_, row) => (7 * i + 11 * rank + row) % ROWS);
      return dataset.batch(rows) as Batch;
    }),
  ),
};

const mean = (output: Tensor, target: Tensor) => crossEntropy(output, target.maximum(0));
const sum = (output: Tensor, target: Tensor) => {
  const isThere = target.ge(0);
  const each = crossEntropy(output, target.maximum(0), { reduction: "none" });
  return { sum: where(isThere, each, 0).sum(), count: isThere.to("f32").sum() };
};

type Extras = Partial<FitOptions<Batch>>;

/** Weights, and the epoch's loss. */
async function train(data: Iterable<Batch>, extras: Extras, dtype: "f64" | undefined, among?: Communicator) {
  const seeded = { generator: new Generator(1) };
  const module = new Sequential(new Linear(6, 8, seeded), new ReLU(), new Linear(8, 3, seeded)).to(dtype ?? "f32");
  const model = among ? new DataParallel(module, among) : module;
  const optimizer = new AdamW(module.namedParameters(), { lr: 0.02 });
  const { loss, ...rest } = extras;
  const forward = ([x, y]: Batch) => loss!(module.forward(x.to(dtype ?? "f32")), y);
  const { epochs } = await fit(model, { data, forward, optimizer, epochs: 1, callbacks: [], ...rest });
  if (model instanceof DataParallel) model.dispose();
  return { weights: module.parameters().flatMap((each) => Array.from(each.dataSync())), loss: epochs[0]!.loss };
}

/** One process takes the ranks' batches in their order. */
const inOrder = (batches: readonly Batch[][]) => batches[0]!.flatMap((_, i) => batches.map((ofRank) => ofRank[i]!));

type Case = Omit<Extras, "data"> & { data: keyof typeof ofRanks; parallel?: boolean; dtype?: "f64"; scaled?: boolean };

const wide = { accumulate: 3, dtype: "f64" } as const;

describe("three ranks have the words of one process that accumulates three batches", () => {
  it.each<[string, Case]>([
    ["mean", { data: "alike", loss: mean }],
    ["mean, scaled and clipped", { data: "alike", loss: mean, clip: { norm: 0.1 }, scaled: true }],
    ["mean, of a DataParallel", { data: "alike", loss: mean, parallel: true }],
    ["sum", { data: "alike", loss: sum }],
    ["sum, eager", { data: "alike", loss: sum, compile: false }],
    ["mean of own batches", { data: "own", loss: mean }],
    ["sum of own batches", { data: "own", loss: sum }],
    ["mean of batches that a collate makes of other sizes", { data: "collated", loss: mean }],
    ["mean, accumulated", { data: "alike", loss: mean, ...wide }],
    ["sum, accumulated", { data: "alike", loss: sum, ...wide }],
    ["mean of own batches, accumulated", { data: "own", loss: mean, ...wide }],
    ["sum of own batches, accumulated", { data: "own", loss: sum, ...wide }],
  ])("%s", async (_, { data, parallel = false, dtype, scaled = false, accumulate = 1, ...extras }) => {
    const options = () => ({ ...extras, ...(scaled ? { scaler: new GradScaler({ initScale: 64 }) } : {}) });
    const ranks = await Promise.all(
      memoryRanks(RANKS).map((communicator, rank) => {
        const whole = { alike: loader, collated, own: undefined }[data];
        const own = whole && !parallel ? (whole() as Iterable<Batch>) : ofRanks[data][rank]!;
        const more = { ...options(), accumulate };
        return parallel ? train(own, more, dtype, communicator) : train(own, { ...more, communicator }, dtype);
      }),
    );
    for (const rank of ranks) expect(rank).toEqual(ranks[0]);
    // A step of each rank has its batches one behind the other.
    const alone = await train(inOrder(ofRanks[data]), { ...options(), accumulate: RANKS * accumulate }, dtype);
    const { weights, loss } = ranks[0]!;
    expect(loss).toBeCloseTo(alone.loss, 6);
    // A rank adds up its own batches first: then the order of the sum is another one.
    const isClose = (value: number, i: number) => Math.abs(value - alone.weights[i]!) < 1e-12;
    if (accumulate > 1) expect(weights.every(isClose)).toBe(true);
    else expect(weights).toEqual(alone.weights);
  });
});

/** Batches one behind the other as one. */
const joined = (batches: readonly Batch[]): Batch => [
  concat(batches.map(([x]) => x)),
  concat(batches.map(([, y]) => y)),
];

describe("ranks whose batches are over wait with weight 0", () => {
  const short = ofRanks.own.map((batches, rank) => batches.slice(0, [4, 1, 3][rank]));
  it.each<[string, Extras]>([
    ["mean", { loss: mean }],
    ["sum", { loss: sum }],
    ["mean, accumulated", { loss: mean, accumulate: 2 }],
    ["sum, accumulated", { loss: sum, accumulate: 2 }],
  ])("%s", async (_, { accumulate = 1, ...extras }) => {
    const ranks = await Promise.all(
      memoryRanks(RANKS).map((communicator, rank) =>
        train(short[rank]!, { ...extras, accumulate, communicator }, "f64"),
      ),
    );
    for (const rank of ranks) expect(rank).toEqual(ranks[0]);
    const steps = Array.from({ length: 4 / accumulate }, (_, i) =>
      joined(short.flatMap((batches) => batches.slice(i * accumulate, (i + 1) * accumulate))),
    );
    const alone = await train(steps, extras, "f64");
    const { weights, loss } = ranks[0]!;
    expect(loss).toBeCloseTo(alone.loss, 6);
    for (const [i, weight] of weights.entries()) expect(weight).toBeCloseTo(alone.weights[i]!, 12);
  });

  it("and change no bit: a last step of two ranks is a last window of two batches", async () => {
    const rows = (first: number) => dataset.batch(Int32Array.of(first, first + 1, first + 2)) as Batch;
    const [a, b, c, d, e] = [0, 5, 10, 15, 20].map(rows) as [Batch, Batch, Batch, Batch, Batch];
    const own = [[a], [b, d], [c, e]];
    const ranks = await Promise.all(
      memoryRanks(RANKS).map((communicator, rank) => train(own[rank]!, { loss: mean, communicator }, undefined)),
    );
    const alone = await train([a, b, c, d, e], { loss: mean, accumulate: 3 }, undefined);
    for (const { weights } of ranks) expect(weights).toEqual(alone.weights);
  });

  it("rejects a rank without a batch, on all ranks", async () => {
    const runs = memoryRanks(2).map((communicator, rank) =>
      train(rank === 0 ? short[0]! : [], { loss: mean, communicator }, "f64"),
    );
    const told = await Promise.allSettled(runs);
    expect(told.map((each) => each.status === "rejected" && each.reason.message)).toEqual([
      expect.stringMatching(/^\[fit\] each rank needs a batch in each epoch, got none on another rank/),
      expect.stringMatching(/^\[fit\] each rank needs a batch in each epoch, got none here/),
    ]);
  });
});

it.each(triesAll ? ["js", "cpu"] : ["cpu"])(
  "three processes too, with a model that is whole or in parts: %s",
  async (device) => {
    const path = fileURLToPath(new URL("../../testing/accumulated-run.ts", import.meta.url));
    const [launcher, program] = await bundled(optRun, path);
    const command = [launcher, "--no-prefix", "-n", String(RANKS), program, device];
    const { stdout, stderr } = spawnSync(process.execPath, command, { encoding: "utf8", timeout: 240_000 });
    expect(stderr).toBe("");
    const all = JSON.parse(stdout, renamed) as Record<string, { steps: number; output: number[] }>[];
    expect(all).toHaveLength(RANKS);
    const { alone } = all[0]!;
    expect(alone!.output).toHaveLength(15);
    for (const told of all) expect(told).toEqual({ alone, data: alone, fully: alone });
  },
);
