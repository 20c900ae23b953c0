/** DataParallel beside PyTorch's DistributedDataParallel on gloo, live. OPT_TORCH_PYTHON names a Python that has it. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Generator, randn } from "@opt/core";
import { torchPython, withoutTorch } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { runJob } from "../../testing/job";

const DDP = fileURLToPath(new URL("../../testing/ddp.py", import.meta.url));

interface Ranked {
  readonly reduced: number[];
  readonly losses: number[];
  /** Running mean and variance, and how many batches there were. */
  readonly buffers: number[][];
}

/** Gradients of one step, then weights and batches of 50. */
function taskFor(ranks: number) {
  const generator = new Generator(ranks);
  const drawn = (...shape: number[]) => [...randn(shape, { generator }).dataSync()];
  const each = <T>(make: () => T) => Array.from({ length: ranks }, make);
  return {
    gradients: each(() => drawn(1000)),
    weights: [drawn(9, 6), drawn(9), drawn(4, 9), drawn(4)].map((values) =>
      values.map((value) => Math.fround(value / 3)),
    ),
    batches: Array.from({ length: 50 }, () => each(() => ({ x: drawn(5, 6), y: drawn(5, 4) }))),
  };
}

const PROGRAM = (file: string) => `
const { rank } = communicator;
const { parameter, tensor } = core;
const task = JSON.parse(readFileSync(${JSON.stringify(file)}, "utf8"));
const w = parameter(new Float32Array(1000));
const given = new DataParallel({ forward: (x) => w.mul(x).sum(), namedParameters: () => [["w", w]] }, communicator, { bucketBytes: 1000 });
given.forward(tensor(task.gradients[rank])).backward();
await given.sync();
const reduced = [...new Int32Array(w.grad.dataSync().buffer)];
const net = new Sequential(new Linear(6, 9), new Tanh(), new Linear(9, 4));
net.parameters().forEach((each, i) => each.set(Float32Array.from(task.weights[i])));
const parallel = new DataParallel(net, communicator);
const optimizer = new NAdam(net.namedParameters(), { lr: 0.01 });
const losses = [];
for (const batches of task.batches) {
  const { x, y } = batches[rank];
  optimizer.zeroGrad();
  const loss = mseLoss(parallel.forward(tensor(Float32Array.from(x), { shape: [5, 6] })), tensor(Float32Array.from(y), { shape: [5, 4] }));
  loss.backward();
  await parallel.sync();
  optimizer.step();
  losses.push(await loss.item());
}
const norm = new BatchNorm1d(6);
const normed = new DataParallel(norm, communicator);
for (const batches of task.batches) {
  const y = normed.forward(tensor(Float32Array.from(batches[rank].x), { shape: [5, 6] }));
  y.mul(y).sum().backward();
  await normed.sync();
  norm.parameters().forEach((each) => { each.grad = null; });
}
const buffers = ["running_mean", "running_var", "num_batches_tracked"].map((name) => [...norm[name].dataSync()]);
tell({ reduced, losses, buffers });`;

const IMPORTS = `import { readFileSync } from "node:fs";
import { DataParallel } from "${new URL("data-parallel.ts", import.meta.url).href}";
import { BatchNorm1d, Linear, mseLoss, Sequential, Tanh } from "${new URL("../../../nn/src/index.ts", import.meta.url).href}";
import { NAdam } from "${new URL("../../../optimizers/nadam/src/index.ts", import.meta.url).href}";`;

describe.skipIf(torchPython === undefined)(`as PyTorch's DistributedDataParallel (gloo)${withoutTorch}`, () => {
  it.each([2, 4])("%d ranks, 50 steps of NAdam", async (ranks) => {
    const folder = mkdtempSync(join(tmpdir(), "opt-ddp-"));
    try {
      const file = join(folder, "task.json");
      const task = JSON.stringify(taskFor(ranks));
      writeFileSync(file, task);
      const { status, stdout, stderr } = spawnSync(torchPython as string, [DDP], {
        input: task,
        encoding: "utf8",
        maxBuffer: 1 << 28,
      });
      expect(status, stderr).toBe(0);
      const theirs: Ranked[] = JSON.parse(stdout);
      const { told, error } = await runJob(ranks, PROGRAM(file), { imports: IMPORTS });
      expect(error).toBe("");
      expect(told).toHaveLength(ranks);
      for (const [rank, { reduced, losses, buffers }] of (told as Ranked[]).entries()) {
        // Theirs take those of rank 0 at the next forward, ours have taken them.
        for (const [i, values] of buffers.entries())
          for (const [j, value] of values.entries())
            expect(Math.abs(value / theirs[0]!.buffers[i]![j]! - 1), `buffer ${i}`).toBeLessThan(1e-6);
        // Two numbers have one order: with two ranks the words are the same.
        if (ranks === 2) expect(reduced).toEqual(theirs[rank]!.reduced);
        for (const [step, loss] of losses.entries())
          expect(Math.abs(loss / theirs[rank]!.losses[step]! - 1), `step ${step}`).toBeLessThan(1e-6);
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
