/** The pool of native threads: several JavaScript threads use it at once, and none keeps the process alive. */
import { execFile, spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { bundled } from "@opt/testkit/bundled";
import { describe, expect, it } from "vitest";
import { missingDevice } from "../testing/missing-device";
import { loadAddon } from "./load-addon";

const run = promisify(execFile);
const script = (name: string) => fileURLToPath(new URL(`../testing/${name}`, import.meta.url));

/** Runs a script in a process of its own, which must end by itself within the test's time, and returns what it printed. */
async function output(name: string, signal: AbortSignal, env: Record<string, string> = {}): Promise<string> {
  const { stdout } = await run(process.execPath, await bundled(script(name)), {
    env: { ...process.env, ...env },
    signal,
  });
  return stdout.trim();
}

describe.skipIf(missingDevice)(`cpu threads${missingDevice ?? ""}`, () => {
  it("serve four worker threads at once, with the same bits as alone", async ({ signal }) => {
    expect(await output("concurrent-steps.ts", signal)).toBe("4 workers agree");
  });

  it("let the process end, also from a worker thread that ends first", async ({ signal }) => {
    expect(await output("short-lived-worker.ts", signal)).toBe("worker 0 ended\nworker 0 ended\nmain done");
  });

  it("do nothing between launches", async ({ signal }) => {
    const share = Number(await output("idle-pool.ts", signal, { OPT_NUM_THREADS: "4", FORCE_COLOR: "1" }));
    expect(share).toBeLessThan(0.05);
  });

  const alone = process.platform !== "linux" || availableParallelism() < 2;
  it.skipIf(alone)(
    `keep off the caller's processor${alone ? " (skipped: needs Linux and two)" : ""}`,
    async ({ signal }) => {
      // The caller's threads may run anywhere, the pool's everywhere else.
      expect((await output("placement.ts", signal)).split(" ").length).toBeGreaterThan(1);
    },
  );

  const hasTaskset = spawnSync("taskset", ["-V"]).status === 0;
  const unset = alone || !hasTaskset;
  it.skipIf(unset)(
    `stay on the processors that are set from outside${unset ? " (skipped: needs Linux, two processors and taskset)" : ""}`,
    async ({ signal }) => {
      expect(await output("placement-set-later.ts", signal)).toBe("true\ntrue");
    },
  );

  it("follow OPT_NUM_THREADS and OPT_CPU_ISA, and reject what these cannot be", async ({ signal }) => {
    await expect(output("idle-pool.ts", signal, { OPT_NUM_THREADS: "many" })).rejects.toThrow(
      /threads must be 1 to 256, got NaN/,
    );
    await expect(output("idle-pool.ts", signal, { OPT_CPU_ISA: "mmx" })).rejects.toThrow(
      /instruction set must be one of/,
    );
  });

  it("follow OPT_CPU_HIDE, and reject what it cannot be", async ({ signal }) => {
    const best = loadAddon()
      .instructionSets()
      .findLast((name) => name !== null)!;
    const hidden = (env: Record<string, string>) => output("idle-pool.ts", signal, env);
    await expect(hidden({ OPT_CPU_HIDE: best, OPT_CPU_ISA: best })).rejects.toThrow(
      new RegExp(`must be .*left|must be one of .* got "${best}"\\. Unset OPT_CPU_HIDE`),
    );
    await expect(hidden({ OPT_CPU_HIDE: "sse2,avx2,avx512,neon" })).rejects.toThrow(
      /an instruction set must be left, got OPT_CPU_HIDE=sse2,avx2,avx512,neon\. Unset OPT_CPU_HIDE/,
    );
    await expect(hidden({ OPT_CPU_HIDE: "avx1024" })).rejects.toThrow(/OPT_CPU_HIDE must be a list of sse2, .*avx1024/);
  });
});
