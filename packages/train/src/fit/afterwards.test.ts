// A model that `fit` has trained is what it was before: a loop by hand trains it on, whatever the run's losses were and however it ended.
import { Generator, init, type Tensor } from "@opt/core";
import { Linear, mseLoss } from "@opt/nn";
import { type Communicator, DataParallel } from "@opt/parallel";
import { SGD } from "@opt/sgd";
import { expect, it } from "vitest";
import { memoryRanks } from "../../../parallel/testing/memory-ranks";
import { type Batch, dataset } from "../../testing/runs";
import { fit } from "../fit";
import type { FitOptions } from "./options";

await init("js");
const rows = dataset([6], 5);
const batches = [0, 2, 4].map((first) => rows.batch(Int32Array.of(first, first + 1)) as Batch);
const error = (output: Tensor, target: Tensor) => mseLoss(output.sum(1), target.to("f32"));
const summed = (output: Tensor, target: Tensor) => ({ sum: error(output, target).mul(2), count: 2 });
const failing = () => {
  let calls = 0;
  return (output: Tensor, target: Tensor) => {
    if (++calls === 3) throw new RangeError("broken");
    return error(output, target);
  };
};

const RUNS: Readonly<Record<string, () => Partial<FitOptions<Batch>> | undefined>> = {
  "no run": () => undefined,
  "means of uneven batches": () => ({ loss: error, accumulate: 2 }),
  sums: () => ({ loss: summed as never }),
  "sums, accumulated": () => ({ loss: summed as never, accumulate: 2 }),
  "a loss that fails": () => ({ loss: failing() }),
};

/** The gradients of a step by hand, after a run. */
async function gradients(communicator: Communicator, options: Partial<FitOptions<Batch>> | undefined) {
  const module = new Linear(6, 3, { generator: new Generator(1) });
  const before = module.parameters().map((each) => each.detach().clone());
  const model = new DataParallel(module, communicator);
  const optimizer = new SGD(module.namedParameters(), { lr: 0.1 });
  const given = { optimizer, epochs: 1, callbacks: [], ...options };
  if (options) await fit(model, { data: batches.slice(communicator.rank), ...given }).catch(() => {});
  for (const [i, each] of module.parameters().entries()) each.set(before[i]!);
  const [x, y] = batches[communicator.rank]!;
  error(model.forward(x) as Tensor, y).backward();
  await model.sync();
  const found = module.parameters().map((each) => [...each.grad!.dataSync()]);
  model.dispose();
  return found;
}

it("a DataParallel averages as before", async () => {
  const all: Record<string, number[][][]> = {};
  for (const [name, options] of Object.entries(RUNS))
    all[name] = await Promise.all(memoryRanks(2).map((communicator) => gradients(communicator, options())));
  for (const found of Object.values(all)) expect(found).toEqual(all["no run"]);
});
