/** Async saves of ranks, while training says other things. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadCheckpoint, saveCheckpoint } from "@opt/checkpoint";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runJob } from "../../testing/job";
import { runInMemory } from "../../testing/memory-job";

const at = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
const imports = `import { saveCheckpoint } from ${at("../../../checkpoint/src/index.ts")};`;

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "opt-saves-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** `begin(step)` begins a save; `train()` is a collective of a step, for which the rank that is `late` takes its time. */
const PROGRAM = (name: string) => `
const { rank, size } = communicator;
const path = ${JSON.stringify(join(folder, name))};
const layout = { mesh: { shape: [size], axes: ["rank"] }, tensors: { "*": "replicate" } };
const x = core.tensor([0, 0]);
const begin = (step, to = path) =>
  saveCheckpoint(to, { step, tensors: { x }, values: { step } }, { communicator, layout, async: true, checkReplicas: true });
const train = async (late) => {
  if (rank === late) await sleep(20);
  x.set([await core.tensor([1]).sum().item() + x.dataSync()[0], 0]);
  await communicator.allReduce(x, "mean");
};
`;

it("go on while ranks train, in the order of the calls and into several folders", async () => {
  const body = `${PROGRAM("both")}
    const saves = [];
    for (let step = 1; step <= 6; step++) {
      await train(step % size);
      const saving = begin(step, step % 2 === 1 ? path : path + "-even");
      await saving.copied;
      saves.push(saving);
    }
    const paths = (await Promise.all(saves)).map(({ path }) => path.slice(-13));
    const x5 = (await loadCheckpoint(path)).tensors.x.dataSync()[0];
    const x2 = (await loadCheckpoint(path + "-even", { step: 2 })).tensors.x.dataSync()[0];
    tell([paths, x5, x2, communicator.traffic.messages > 0]);`;
  const told = await runInMemory(3, body, { loadCheckpoint, saveCheckpoint });
  const paths = [1, 2, 3, 4, 5, 6].map((step) => `step-0000000${step}`);
  expect(told).toEqual(new Array(3).fill([paths, 5, 2, true]));
});

it("of one rank alone are told by the next collective", async () => {
  const body = `${PROGRAM("alone")}
    await train();
    if (rank === 0) begin(7).catch(() => {});
    const told = await train().then(() => "went on", ({ code, message }) => [code, message]);
    tell(told);
    await sleep(300);
    process.exit(0);`;
  const { told } = await runJob(2, body, { imports });
  const advice =
    "All ranks make the same meshes, layers, optimizers and async saves, from one seed, and give them the same inputs.";
  expect(told[1]).toEqual([
    "BAD_STATE",
    `[allReduce] in allReduce "mean" rank 0 has "an async save" where this rank has nothing. ${advice}`,
  ]);
});

it("are rejected when the communicator is closed", async () => {
  const body = `${PROGRAM("closed")}
    const half = await communicator.split(0);
    await half.close();
    const saving = saveCheckpoint(path, { step: 1, tensors: { x } }, { communicator: half, layout, async: true });
    tell(await saving.then(() => "saved", ({ code }) => code));`;
  expect(await runInMemory(2, body, { saveCheckpoint })).toEqual(["DISPOSED", "DISPOSED"]);
});
