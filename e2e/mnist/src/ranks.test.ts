/** MNIST's network on real processes has the bits of one process, with each optimizer. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { init, listDevices } from "@opt/core";
import { sample } from "@opt/testkit";
import { bundled, optRun } from "@opt/testkit/bundled";
import { describe, expect, it } from "vitest";
import { argumentsOf, type RanksOptions, type RanksResult, trainAlone } from "./ranks";

const devices = new Map((await listDevices()).map((device) => [device.name, device]));

const RUNS: readonly [number, RanksOptions["optimizer"], string][] = [
  [2, "NAdam", "cpu"],
  [4, "AMSGrad", "cpu"],
  [3, "AdamW", "wasm"],
];

const [launcher, program] = await bundled(optRun, fileURLToPath(new URL("ranks.ts", import.meta.url)));

describe.each(sample(RUNS))("%d ranks, %s on %s", (ranks, optimizer, name) => {
  it("20 steps, bit for bit", async ({ skip }) => {
    const { available, reason } = devices.get(name)!;
    if (!available) skip(reason);
    const options = { optimizer, steps: 20, batchSize: 8, seed: 1 };
    const args = [launcher, "--no-prefix", "-n", String(ranks), program, ...argumentsOf(name, options)];
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8", timeout: 240_000 });
    expect(stderr).toBe("");
    const results: RanksResult[] = JSON.parse(stdout);
    await init(name);
    const { digest } = await trainAlone(options, ranks);
    expect(results.map((result) => result.digest)).toEqual(new Array(ranks).fill(digest));
  });
});
