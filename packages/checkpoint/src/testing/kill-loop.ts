/** Real processes killed (SIGKILL) at random moments of real saves. */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { build } from "esbuild";
import { expect } from "vitest";
import { listSteps } from "../format/steps";
import { loadCheckpoint } from "../read/load";
import { verifyCheckpoint } from "../read/verify";
import { saveCheckpoint } from "../save/save";
import { nodeFileSystem } from "../stores/file-system";
import { random, randomBytes } from "./random";

async function bundledProgram(): Promise<string> {
  // Bundled once, so that a process is ready in a few milliseconds and most of its life is spent saving.
  const built = await build({
    entryPoints: [new URL("./endless-saves.ts", import.meta.url).pathname],
    bundle: true,
    platform: "node",
    format: "esm",
    conditions: ["@opt/source"],
    write: false,
    logLevel: "silent",
  });
  return built.outputFiles[0]!.text;
}

/** A process that saves steps `from`, `from + 1`, ... without end, and says when it has begun. */
async function startSaving(code: string, run: string, from: number): Promise<ChildProcess> {
  const child = spawn(process.execPath, ["--input-type=module", "-", run, String(from)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  child.stdin!.end(code);
  await new Promise((resolve) => child.stdout!.once("data", resolve));
  return child;
}

/** Kills a saving process `kills` times: each time the latest step must load whole and verify, and never be an older one. */
export async function killLoop(folder: string, kills: number): Promise<void> {
  const code = await bundledProgram();
  const run = join(folder, "run");
  const next = random(7);
  await saveCheckpoint(run, {
    step: 0,
    tensors: { w: { dtype: "U8", shape: [1 << 18], data: randomBytes(1 << 18, 0) } },
  });
  let latest = 0;
  let unfinished = 0;
  for (let kill = 0; kill < kills; kill++) {
    const child = await startSaving(code, run, latest + 1);
    await new Promise((resolve) => setTimeout(resolve, (next() % 6000) / 100));
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await gone;
    const steps = await listSteps(nodeFileSystem, run);
    expect(steps.at(-1)!.step).toBeGreaterThanOrEqual(latest);
    latest = steps.at(-1)!.step;
    expect(await verifyCheckpoint(run)).toMatchObject({ ok: true });
    const { tensors, step } = await loadCheckpoint(run, { as: "plain" });
    expect(step).toBe(latest);
    expect(Buffer.compare(tensors.w!.data, randomBytes(1 << 18, latest))).toBe(0);
    const names = (await nodeFileSystem.list(run)).map(({ name }) => name);
    if (names.some((name) => name.includes(".tmp-"))) unfinished++;
  }
  // Kills that hit nothing would prove nothing.
  expect(unfinished).toBeGreaterThan(kills / 10);
  expect(latest).toBeGreaterThan(0);
  // The next save that ends sweeps whatever the killed ones have left.
  await saveCheckpoint(run, { step: latest + 1, tensors: { w: { dtype: "U8", shape: [1], data: randomBytes(1, 0) } } });
  const left = (await nodeFileSystem.list(run)).map(({ name }) => name).filter((name) => !/^step-\d+$/.test(name));
  expect(left).toEqual([]);
}
