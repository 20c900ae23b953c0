/** A training in a worker thread of Node. */

import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { AdamW } from "@opt/adam-amsgrad";
import { init, type Tensor } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { bundled } from "@opt/testkit/bundled";
import { afterAll, beforeEach, expect, it } from "vitest";
import { begin, optionsOf } from "../../testing/runs";
import { fit } from "../fit";
import { start } from "./start";

beforeEach(() => init("js"));

const [program] = await bundled(fileURLToPath(new URL("../../testing/training-worker.ts", import.meta.url)));
const begun = () => new Worker(program, { execArgv: [] });
const worker = begun();
afterAll(() => worker.terminate());

interface Result {
  weights: Record<string, Tensor>;
  steps: number;
}

/** The same run on this thread. */
async function here(epochs: number) {
  const run = begin("mlp", (model) => new AdamW(model.namedParameters(), { lr: 0.02 }), {});
  const { losses } = await fit(run.model, { ...optionsOf(run, {}), epochs });
  return { weights: run.model.stateDict(), losses };
}

const numbers = (weights: Record<string, Tensor>) => Object.values(weights).map((x) => [...x.dataSync()]);

it("tells each epoch and every loss, and returns tensors", async () => {
  const run = start<Result>(worker, { epochs: 3 });
  const losses: number[] = [];
  const types = new Set<string>();
  const steps: number[][] = [];
  for await (const event of run) {
    losses.push(...event.losses);
    const { type, epoch, epochStep, stepsPerEpoch, step } = event;
    if (type === "stepEnd") steps.push([epoch, epochStep, stepsPerEpoch!, step]);
    types.add(event.type);
    await new Promise((resolve) => setTimeout(resolve, 2)); // slower than its steps
  }
  const { weights } = await run.result;
  const expected = await here(3);
  expect(numbers(weights)).toEqual(numbers(expected.weights));
  expect(losses).toEqual(expected.losses);
  expect(steps.filter(([, done, all]) => done === all)).toEqual([0, 1, 2].map((epoch) => [epoch, 3, 3, 3 * epoch + 3]));
  expect([...types]).toEqual(expect.arrayContaining(["trainBegin", "epochBegin", "epochEnd", "trainEnd"]));
});

it("starts a worker that has been ready for a while", async () => {
  const early = begun();
  await once(early, "message");
  expect((await start<Result>(early, { epochs: 1 }).result).steps).toBe(3);
  await early.terminate();
});

it("stops after the step", async () => {
  const run = start<Result>(worker, { epochs: 1_000_000 });
  for await (const { type } of run) if (type === "epochEnd") run.stop();
  expect((await run.result).steps).toBeLessThan(1_000_000);
});

it("reports a worker that dies; another one goes on from the checkpoint to the same words", async () => {
  const folder = await mkdtemp(join(tmpdir(), "opt-worker-"));
  const mortal = begun();
  const first = start<Result>(mortal, { epochs: 20, folder });
  await expectCode("DEVICE_LOST", async () => {
    for await (const { type } of first) if (type === "save") await mortal.terminate();
  });
  const second = start<Result>(worker, { epochs: 20, folder });
  expect(numbers((await second.result).weights)).toEqual(numbers((await here(20)).weights));
  await rm(folder, { recursive: true });
});

it("answers one run while another trains, and another one after it", async () => {
  const long = start<Result>(worker, { epochs: 1_000_000 });
  for await (const { type } of long) if (type === "epochBegin") break;
  const short = () => start<Result>(worker, { epochs: 3 }).result;
  const { losses, weights } = await here(3);
  expect((await short()).steps).toBe(losses.length);
  long.stop();
  expect((await long.result).steps).toBeLessThan(1_000_000);
  expect(numbers((await short()).weights)).toEqual(numbers(weights));
});

it("passes on what the worker throws", async () => {
  const run = start(worker, { epochs: 0 });
  await expectCode("BAD_ARGUMENT", () => run.result);
  await expect(run.result).rejects.toThrow("epochs must be a whole number from 1 on, got 0");
});

it("rejects what is no worker", () => expectCode("BAD_ARGUMENT", () => start({} as never)));
