/** The GPT on real processes has the bits of one process, with each optimizer. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { init } from "@opt/core";
import { sample } from "@opt/testkit";
import { bundled, optRun } from "@opt/testkit/bundled";
import { describe, expect, it } from "vitest";
import { argumentsOf, type RanksOptions, type RanksResult, trainAlone } from "./ranks";

const RUNS: readonly [number, RanksOptions["optimizer"], string][] = [
  [2, "NAdam", "wasm"],
  [4, "AdamW", "wasm"],
  [3, "AMSGrad", "js"],
];

const [launcher, program] = await bundled(optRun, fileURLToPath(new URL("ranks.ts", import.meta.url)));

describe.each(sample(RUNS))("%d ranks, %s on %s", (ranks, optimizer, device) => {
  it("20 steps, bit for bit", async () => {
    const options = { optimizer, steps: 20, width: 16, length: 16, batch: 2, seed: 1 };
    const args = [launcher, "--no-prefix", "-n", String(ranks), program, ...argumentsOf(device, options)];
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8", timeout: 240_000 });
    expect(stderr).toBe("");
    const results: RanksResult[] = JSON.parse(stdout);
    await init(device);
    const { digest, losses } = await trainAlone(options, ranks);
    expect(results.map((result) => result.digest)).toEqual(new Array(ranks).fill(digest));
    expect(results[0]!.losses).toEqual(losses);
    expect(losses[1]).toBeLessThan(losses[0]);
  });
});
