/** What one rank throws ends the run on all, at the end of the step. */
import { AdamW } from "@opt/adam-amsgrad";
import { manualSeed, type Tensor } from "@opt/core";
import { crossEntropy, Linear } from "@opt/nn";
import "@opt/parallel";
import { expect, it } from "vitest";
import { memoryRanks } from "../../../parallel/testing/memory-ranks";
import { type Batch, dataset } from "../../testing/runs";
import { fit } from "../fit";
import type { FitOptions } from "./options";

const fail = (): never => {
  throw new RangeError("out of paper");
};
const rows = dataset([6], 3);
const batchOf = (first: number) => rows.batch(Int32Array.of(first, first + 1)) as Batch;
const all = [batchOf(0), batchOf(2), batchOf(4), batchOf(6)];
function* failing(count: number): Generator<Batch> {
  yield* all.slice(0, count);
  fail();
}
const lossOnce = () => {
  let calls = 0;
  return (output: Tensor, target: Tensor) => (++calls === 2 ? fail() : crossEntropy(output, target));
};

const CASES: [string, Partial<FitOptions<Batch>>][] = [
  ["a callback before the run", { callbacks: [{ onTrainBegin: fail }] }],
  ["a callback before an epoch", { callbacks: [{ onEpochBegin: fail }] }],
  ["a callback after a step", { callbacks: [{ onStepEnd: fail }] }],
  ["a callback after a step, later", { callbacks: [{ onStepEnd: async ({ step }) => step === 3 && fail() }] }],
  ["a callback after an epoch", { callbacks: [{ onEpochEnd: fail }] }],
  ["data before their first batch", { data: () => failing(0) }],
  ["data after some batches", { data: () => failing(3) }],
  ["a loss", { loss: lossOnce() }],
  ["a loss in the middle of a window", { loss: lossOnce(), accumulate: 2 }],
  ["data to measure on", { validation: () => failing(1) }],
  ["a checkpoint that is missing", { resume: "/nowhere/at/all" }],
];

it.each(CASES)("%s", async (_, given) => {
  const runs = memoryRanks(2).map((communicator, rank) => {
    manualSeed(1);
    const model = new Linear(6, 3);
    const optimizer = new AdamW(model.namedParameters());
    const { accumulate } = given;
    const own =
      rank === 1 ? given : { ...(accumulate && { accumulate }), ...(given.validation && { validation: all }) };
    const loss = (output: Tensor, target: Tensor) => crossEntropy(output, target);
    return fit(model, { data: all, loss, optimizer, epochs: 2, callbacks: [], communicator, ...own });
  });
  const [first, second] = (await Promise.allSettled(runs)).map((each) =>
    each.status === "rejected" ? each.reason : each,
  );
  const isMissing = given.resume !== undefined;
  expect(second).toMatchObject(isMissing ? { code: "MISSING" } : { name: "RangeError", message: "out of paper" });
  expect(first).toMatchObject({ code: "IO", message: expect.stringContaining(`rank 1 threw: ${second.message}`) });
});
