/** `opt-run --prove-resume` on loops by hand, in processes of their own. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundled, optRun } from "@opt/testkit/bundled";
import { expect, it } from "vitest";

const [cli, loop] = await bundled(optRun, fileURLToPath(new URL("../../testing/proven-loop.ts", import.meta.url)));

function prove(...args: string[]) {
  const folder = mkdtempSync(join(tmpdir(), "opt-proven-"));
  const env = { ...process.env, OPT_TEST_FOLDER: join(folder, "run") };
  const { status, stderr } = spawnSync(process.execPath, [cli, "--prove-resume", ...args], { encoding: "utf8", env });
  rmSync(folder, { recursive: true });
  const kept = /are in (\S+)/.exec(stderr)?.[1];
  const isKept = kept !== undefined && existsSync(kept);
  if (isKept) rmSync(kept, { recursive: true });
  return { status, stderr, isKept };
}

it.each([[["5,9", loop, "js"]], [["8", "-n", "2", loop, "wasm"]]])("proves a right program: %s", (args) => {
  const { status, stderr, isKept } = prove(...args);
  expect(stderr).toMatch(/proven: broken at .* and resumed, the run is the same to step 15/);
  expect([status, isKept]).toEqual([0, false]);
});

it.each([
  ["cold", ["4,9"], /step 4 after the break at step 4 differs: optimizer\.state\.0\.weight\.step.*begins cold/s],
  ["draws", ["-n", "2", "7"], /rank 1: step 7 after the break at step 7 differs: generators\.1.*dropout/s],
  ["unseeded", ["5"], /step 0 differs.*not the same twice/s],
  ["anew", ["5"], /began at the start again: nothing is proven. Save by step 5/],
  [
    "elsewhere",
    ["5"],
    /the broken run began at step 12, not at the start. Save and resume in process.env.OPT_RUN_FOLDER/,
  ],
  ["", ["40"], /the run must go on behind step 40, got 15 steps/],
])("names what is wrong: %s", (fault, options, message) => {
  const breaks = options.at(-1)!;
  const { status, stderr, isKept } = prove(breaks, ...options.slice(0, -1), loop, "js", fault);
  expect(stderr).toMatch(message);
  expect([status, isKept]).toEqual([1, true]);
});

it("a loop ends where record() says so", () => {
  const { status, stderr } = prove("5", loop, "js", "endless");
  expect(stderr).toMatch(/the run must end where record\(\) returns true, got one more step, 7/);
  expect(status).toBe(1);
});

it("says what is wrong with the command", () => {
  const idle = join(dirname(loop), "idle.mjs");
  writeFileSync(idle, "");
  const none = prove("5", idle);
  expect([none.status, none.stderr]).toEqual([1, expect.stringMatching(/a rank has recorded no step. Train with fit/)]);
  for (const [args, problem] of [
    [["9,5", loop], /--prove-resume must be ascending steps like 10,20, got 9,5/],
    [["5", "--restarts", "1", loop], /--prove-resume goes without --hosts and --restarts/],
  ] as const) {
    const { status, stderr } = prove(...args);
    expect([status, stderr]).toEqual([2, expect.stringMatching(problem)]);
  }
});
