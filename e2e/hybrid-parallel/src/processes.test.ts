/** The tutorial with real processes: a mesh of 2 x 2, then 2 ranks, then 3, then one; beside a run of one process that never stopped. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { convertCheckpoint, diffCheckpoints, loadCheckpoint, mergeCheckpoint } from "@opt/checkpoint";
import { bundled, optRun } from "@opt/testkit/bundled";
import { afterAll, describe, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "hybrid-parallel-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const [launcher, program] = await bundled(optRun, fileURLToPath(new URL("phase.ts", import.meta.url)));

/** The losses of a phase. */
async function phase(ranks: number, ...args: string[]): Promise<number[]> {
  const child = spawn(process.execPath, [launcher, "--no-prefix", "-n", String(ranks), program, ...args]);
  const texts: [string, string] = ["", ""];
  for (const [i, stream] of [child.stdout, child.stderr].entries())
    stream.setEncoding("utf8").on("data", (text: string) => {
      texts[i] += text;
    });
  const timer = setTimeout(() => child.kill("SIGTERM"), 240_000);
  const code = await new Promise((resolve) => child.on("close", resolve));
  clearTimeout(timer);
  expect([code, texts[1]]).toEqual([0, ""]);
  return JSON.parse(texts[0]).losses;
}

const near = (values: readonly number[], expected: readonly number[]) => {
  expect(values).toHaveLength(expected.length);
  for (const [i, value] of values.entries()) expect(Math.abs(value / expected[i]! - 1)).toBeLessThan(1e-6);
};

const run = join(folder, "run");
const whole = join(folder, "whole");

describe("phases on other ranks", () => {
  const PHASES = [
    { mesh: "2x2", from: 0, to: 20 },
    { mesh: "2x1", from: 20, to: 30 },
    { mesh: "1x3", from: 30, to: 40 },
    { mesh: "1x1", from: 40, to: 50 },
  ];
  const losses: number[] = [];

  it.each(PHASES)("$mesh, steps $from to $to", async ({ mesh, from, to }) => {
    const ranks = mesh.split("x").reduce((product, extent) => product * Number(extent), 1);
    const again = join(folder, `again-${from}`);
    const args = ["--mesh", mesh, "--from", String(from), "--to", String(to)];
    losses.push(...(await phase(ranks, run, ...args, ...(from > 0 ? ["--again", again] : []))));
    if (from === 0) return;
    // What other ranks saved came over to the bit.
    const [before, after] = await Promise.all([
      mergeCheckpoint(join(run, `step-${String(from).padStart(8, "0")}`), join(folder, `${from}.safetensors`)),
      mergeCheckpoint(again, join(folder, `${from}-again.safetensors`)),
    ]);
    expect(before).toBeDefined();
    expect(after).toBeDefined();
    const { equal } = await diffCheckpoints(
      join(folder, `${from}.safetensors`),
      join(folder, `${from}-again.safetensors`),
    );
    expect(equal).toBe(true);
  });

  it("are one run that never stopped", async () => {
    near(losses, await phase(1, whole, "--to", "50"));
    const [ours, theirs] = await Promise.all([loadCheckpoint(run), loadCheckpoint(whole)]);
    expect(Object.keys(ours.tensors).sort()).toEqual(Object.keys(theirs.tensors).sort());
    for (const [name, tensor] of Object.entries(ours.tensors)) {
      const expected = theirs.tensors[name]!.dataSync();
      for (const [i, value] of tensor.dataSync().entries())
        expect(Math.abs(value - expected[i]!), name).toBeLessThan(1e-6);
    }
  });
});

it("MindSpore's files of four ranks, with their strategy, and of three hold the same weights and state", async () => {
  const step = join(run, "step-00000020");
  const { tensors } = await loadCheckpoint(step);
  for (const ranks of [4, 3]) {
    const out = join(folder, `mindspore-${ranks}`);
    await convertCheckpoint(step, out, { to: "ckpt", ranks });
    const back = join(folder, `back-${ranks}`);
    await convertCheckpoint(out, back, { to: "checkpoint" });
    const loaded = await loadCheckpoint(back);
    for (const [name, tensor] of Object.entries(tensors)) {
      expect(loaded.tensors[name], `${name} of ${Object.keys(loaded.tensors)}`).toBeDefined();
      expect(loaded.tensors[name]!.tolist(), name).toEqual(tensor.tolist());
    }
  }
});
