/** What a run records where it is proven, and that it records nothing elsewhere. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { init, tensor } from "@opt/core";
import { afterEach, expect, it, vi } from "vitest";
import { scratchFolder } from "../../testing/fixtures";
import { recordedRun } from "./record";

await init("js");
const folder = scratchFolder();
afterEach(() => vi.unstubAllEnvs());

async function proven(env: Record<string, string> = {}) {
  const place = join(folder.path, `part-${Math.random()}`);
  for (const [name, value] of Object.entries({ OPT_RUN_LEDGER: place, ...env })) vi.stubEnv(name, value);
  const run = await recordedRun("runs/a");
  const lines = () =>
    readFileSync(`${place}-${env.OPT_RUN_RANK ?? 0}.jsonl`, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
  return { run, lines };
}

it("records nothing outside of a proof", async () => {
  const run = await recordedRun("runs/a");
  expect([run.folder, run.breakAt, await run.record(1, {})]).toEqual(["runs/a", Number.POSITIVE_INFINITY, false]);
  await expect(recordedRun("")).rejects.toMatchObject({ code: "BAD_ARGUMENT" });
});

it("records a tree by dotted names, in a file of the rank", async () => {
  const { run, lines } = await proven({ OPT_RUN_FOLDER: "/proof", OPT_RUN_RANK: "1" });
  expect(run.folder).toBe("/proof");
  const words = Uint32Array.of(1, 2);
  const state = {
    model: { w: tensor([1]) },
    lr: -0,
    loss: Number.NaN,
    order: [2, 1],
    none: null,
    random: { words },
    seconds: 3,
    gone: undefined,
  };
  expect(await run.record(1, state)).toBe(false);
  const [{ tensors, values }] = lines();
  expect(Object.keys(tensors)).toEqual(["model.w", "random.words"]);
  expect(values).toEqual({ lr: "-0", loss: "NaN", order: '["2","1"]', none: null });
  await expect(run.record(2, { f: () => 1 })).rejects.toMatchObject({ code: "BAD_ARGUMENT", message: /f must be/ });
});

it("ends one step behind the break, and no later", async () => {
  const { run } = await proven({ OPT_RUN_BREAK: "2" });
  expect(run.breakAt).toBe(2);
  const ends: boolean[] = [];
  for (const step of [1, 2, 3, 3]) ends.push(await run.record(step, {}));
  expect(ends).toEqual([false, false, true, true]);
  await expect(run.record(4, {})).rejects.toMatchObject({ code: "BAD_STATE", message: /got one more step, 4/ });
});
