/** W ranks are `accumulate: W`, however samples are cut. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { bundled, optRun } from "@opt/testkit/bundled";
import { expect, it } from "vitest";

it("three ranks have the words of one process that accumulates three batches", async () => {
  const program = fileURLToPath(new URL("../../testing/window-run.ts", import.meta.url));
  const [launcher, bundle] = await bundled(optRun, program);
  const { stdout, stderr } = spawnSync(process.execPath, [launcher, "-n", "3", bundle, "js"], {
    encoding: "utf8",
    timeout: 120_000,
  });
  expect(stderr).toBe("");
  const ranks = JSON.parse(stdout) as Record<string, { ranks: number[]; alone: number[] }>[];
  expect(ranks).toHaveLength(3);
  for (const each of ranks)
    for (const [name, { ranks: together, alone }] of Object.entries(each)) {
      expect(together, name).toEqual(ranks[0]![name]!.ranks);
      // A rank adds up its own batches first: then the order of the sum is another one.
      const isClose = (value: number, i: number) => Math.abs(value - alone[i]!) < 1e-12;
      if (name.endsWith("accumulated")) expect(together.every(isClose), name).toBe(true);
      else expect(together, name).toEqual(alone);
    }
});
