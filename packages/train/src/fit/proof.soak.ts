/** No false alarm: 20 right programs, by `fit` and by hand, on 1 and 2 ranks. `npm run soak -- packages/train/src/fit/proof` */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { bundled, optRun } from "@opt/testkit/bundled";
import { expect, it } from "vitest";

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const [cli, byFit, byHand] = await bundled(
  optRun,
  path("../../testing/proven-run.ts"),
  path("../../../parallel/testing/proven-loop.ts"),
);

const FITS = [
  ["js", 1, ""],
  ["js", 1, "dropout,schedule,ema,every"],
  ["js", 1, "plateau,early,validation"],
  ["js", 2, "dropout,schedule,ema"],
  ["wasm", 1, "dropout,schedule,scaler,ema,accumulate,validation"],
  ["wasm", 1, "ordered,every,clip"],
  ["wasm", 1, "scaler,clip,every"],
  ["wasm", 2, "dropout,scaler,accumulate,ema,validation"],
  ["wasm", 2, "plateau,early"],
  ["cpu", 1, "dropout,plateau,early,clip"],
  ["cpu", 1, "schedule,scaler,ordered,every"],
  ["cpu", 1, "accumulate,ema,validation"],
  ["cpu", 2, "dropout,schedule,scaler,every"],
  ["cpu", 2, "ema,clip,accumulate"],
] as const;
const LOOPS = (["js", "wasm", "cpu"] as const).flatMap((device) => [1, 2].map((ranks) => [device, ranks, ""] as const));
const programs = [...FITS.map((each) => [byFit, ...each] as const), ...LOOPS.map((each) => [byHand, ...each] as const)];

it("has 20 programs", () => expect(programs).toHaveLength(20));

it.each(programs)("%s %s on %d ranks, %s", (program, device, ranks, kind) => {
  const args = [cli, "--prove-resume", "3,7", "-n", `${ranks}`, program, device, kind];
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  expect([status, stderr]).toEqual([0, expect.stringContaining("proven: broken at 3 and 7")]);
});
