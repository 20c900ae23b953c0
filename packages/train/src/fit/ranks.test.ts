/** Ranks that train by `fit`. */

import { spawnSync } from "node:child_process";
import { cp, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { AdamW } from "@opt/adam-amsgrad";
import { init } from "@opt/core";
import { DataLoader } from "@opt/data";
import type { Module } from "@opt/nn";
import { connect, DataParallel, DistributedSampler } from "@opt/parallel";
import { expectCode } from "@opt/testkit";
import { bundled, optRun } from "@opt/testkit/bundled";
import { expect, it } from "vitest";
import { memoryRanks } from "../../../parallel/testing/memory-ranks";
import { renamed } from "../../../parallel/testing/told";
import { type ResumedRun, resumedRun } from "../../testing/resumed-run";
import { begin, optionsOf, words } from "../../testing/runs";
import { fit } from "../fit";
import { evaluate } from "./evaluate";

interface Trained {
  words: string;
  epochs: Record<string, number>[];
  steps: number;
}

interface Results {
  /** With a sampler, by shares, by shares with NAdam. */
  hand: string[];
  fits: Trained[];
  sharded: Trained;
  interrupted: Trained;
  resumed: Trained;
  stopped: number;
  early: number;
  lines: string[];
  alone: Record<string, number>;
  evaluated: Record<string, number>;
  outputs: string;
  predicted: string;
}

const RANKS = 2;
const STEPS = 6; // of 44 rows in batches of 8

it("two ranks have the words of the loop by hand, and end together", async () => {
  const folder = await mkdtemp(join(tmpdir(), "opt-ranks-"));
  const [launcher, program] = await bundled(
    optRun,
    fileURLToPath(new URL("../../testing/ranks-run.ts", import.meta.url)),
  );
  const run = [launcher, "--no-prefix", "-n", String(RANKS), program, folder, "cpu"];
  const { stdout, stderr } = spawnSync(process.execPath, run, { encoding: "utf8", timeout: 240_000 });
  expect(stderr).toMatch(/^\[earlyStopping\] stopped after epoch \d: loss was best in epoch \d, .*\n$/);
  const all = JSON.parse(stdout, renamed) as Results[];
  expect(all).toHaveLength(RANKS);
  for (const [rank, each] of all.entries()) {
    const { hand, fits, sharded, interrupted, resumed } = each;
    expect(fits.map(({ words }) => words)).toEqual(hand);
    expect(hand).toEqual(all[0]!.hand);
    expect([sharded.words, resumed.words]).toEqual([hand[1], hand[1]]);
    expect(fits.map(({ epochs }) => epochs)).toEqual(all[0]!.fits.map(({ epochs }) => epochs));
    expect(resumed.epochs).toEqual(sharded.epochs);
    expect([fits[1]!.steps, interrupted.steps, each.stopped, each.early]).toEqual([STEPS, 2, 3, each.early]);
    expect(each.early).toBe(all[0]!.early);
    expect(each.evaluated.accuracy).toBe(each.alone.accuracy);
    expect(each.evaluated.loss).toBeCloseTo(each.alone.loss!, 6);
    expect(each.predicted).toBe(each.outputs);
    expect(each.lines).toEqual(rank > 0 ? [] : [`1 ${STEPS / 2}`, "epoch 1/2", `2 ${STEPS}`, "epoch 2/2"]);
  }
  expect((await readdir(folder)).sort()).toEqual(["board", "checkpoints", "epochs.csv", "stopped"]);
  expect(await readdir(join(folder, "board"))).toHaveLength(1);
  await rm(folder, { recursive: true });
});

/** The samples of each step of all ranks, the weights at the end, and the losses of epochs. */
async function resumed(ranks: number, run: ResumedRun) {
  await init("js");
  const all = await Promise.all(memoryRanks(ranks).map((communicator) => resumedRun(communicator, run)));
  const steps = all[0]!.steps.map((_, i) => all.flatMap((rank) => rank.steps[i]!).sort((a, b) => a - b));
  return { ...all[0]!, steps };
}

/** Ranks, and the size of their batches. */
const OTHERS = [
  [2, 10],
  [3, 5],
  [1, 20],
  [5, 4],
] as const;

it.each(["order", "sampler"] as const)("a run inside an epoch goes on on other ranks, by the %s", async (by) => {
  const folder = await mkdtemp(join(tmpdir(), "opt-resumed-"));
  try {
    const whole = await resumed(4, { folder: join(folder, "whole"), batchSize: 5, by });
    expect(whole.steps).toHaveLength(6);
    const begun = await resumed(4, { folder: join(folder, "saved"), batchSize: 5, last: 1, by });
    for (const [ranks, batchSize] of OTHERS) {
      await cp(join(folder, "saved"), join(folder, "other"), { recursive: true });
      const rest = await resumed(ranks, { folder: join(folder, "other"), batchSize, by });
      await rm(join(folder, "other"), { recursive: true });
      const steps = [...begun.steps, ...rest.steps];
      const firstEpoch = steps.slice(0, -Math.round(60 / (ranks * batchSize)));
      // What fills the last step comes twice.
      expect([...new Set(firstEpoch.flat())].sort((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, i) => i));
      if (ranks * batchSize !== 20) continue;
      expect(steps).toEqual(whole.steps);
      rest.weights.forEach((weight, i) => {
        expect(weight).toBeCloseTo(whole.weights[i]!, 5);
      });
      rest.losses.forEach((loss, i) => {
        expect(loss).toBeCloseTo(whole.losses[i]!, 5);
      });
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

const adamW = (model: Module) => new AdamW(model.namedParameters(), { lr: 0.02 });

it("one rank has the words of a run without ranks", async () => {
  await init("js");
  const communicator = await connect();
  const run = begin("mlp", adamW, {});
  await fit(run.model, optionsOf(run, {}));
  const other = begin("mlp", adamW, {});
  await fit(other.model, { ...optionsOf(other, {}), communicator });
  expect(await words(other)).toEqual(await words(run));
  await fit(other.model, { ...optionsOf(other, {}), communicator }); // the model is free again
});

it("rejects another communicator than the model's, and what is not one", async () => {
  await init("js");
  const run = begin("mlp", adamW, {});
  const options = optionsOf(run, {});
  const communicator = await connect();
  expectCode("BAD_ARGUMENT", () => fit(run.model, { ...options, communicator: {} as never }));
  await expectCode("BAD_ARGUMENT", () => evaluate(run.model, { data: [], communicator: 2 as never }));
  const parallel = new DataParallel(run.model, await communicator.split(0));
  expectCode("BAD_ARGUMENT", () => fit(parallel, { ...options, communicator }));
});

it("a loader that was resumed by its sampler's place begins the next epoch at its start", () => {
  const made = () => {
    const sampler = new DistributedSampler(20, { rank: 1, size: 2, shuffle: false });
    return new DataLoader(
      Array.from({ length: 20 }, (_, i) => i),
      { batchSize: 3, sampler },
    );
  };
  const samplesOf = (loader: ReturnType<typeof made>) => Array.from(loader, (batch) => [...batch.dataSync()]).flat();
  const first = made();
  const seen: number[] = [];
  for (const batch of first) {
    seen.push(...batch.dataSync());
    break;
  }
  const second = made();
  second.loadStateDict(JSON.parse(JSON.stringify(first.stateDict())));
  const whole = Array.from({ length: 10 }, (_, i) => 1 + 2 * i);
  expect([...seen, ...samplesOf(second)]).toEqual(whole);
  expect(samplesOf(second)).toEqual(whole);
});
