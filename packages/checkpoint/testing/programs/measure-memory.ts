/** How much memory merging takes, measured in a process of its own. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { bundled } from "@opt/testkit/bundled";
import { saveCheckpoint } from "../../src/save/save";
import { randomBytes } from "../random";

export interface MemoryUse {
  readonly base: number;
  readonly merged: number;
  readonly resliced: number;
}

/** Saves `mib` MiB from 8 ranks on a 2x4 mesh, merges and re-slices them under `cap` bytes, and tells the peaks in bytes. */
export async function measureMemory(folder: string, mib: number, cap: number): Promise<MemoryUse> {
  const rows = mib; // of 1 MiB in float32, in tensors of 64 MiB
  const data = randomBytes(64 << 20, 1);
  const tensors = Array.from(
    { length: rows / 64 },
    (_, i) => [`layer.${i}`, { dtype: "F32", shape: [64, 262144], data }] as const,
  );
  const layout = { mesh: { shape: [2, 4], axes: ["a", "b"] }, tensors: { "*": ["a", "b"] } };
  await saveCheckpoint(`${folder}/run`, { step: 0, tensors }, { layout });
  const [program] = await bundled(new URL("./merge-memory.ts", import.meta.url).pathname);
  const ran = spawnSync(process.execPath, [program, `${folder}/run`, String(cap), folder], {
    encoding: "utf8",
    timeout: 240_000,
  });
  if (ran.status !== 0) throw new Error(ran.stderr);
  return JSON.parse(readFileSync(`${folder}/memory.json`, "utf8"));
}

/**
 * By how many bytes what only slow collections free grows while `tensors` small tensors of 4 ranks are re-sliced to 3. V8 decides after each
 * quick collection where it makes which objects: with a young generation of one size, and collections that stop the program, the answer is
 * the same on a busy machine (on its own terms it was 0.4 to 71 MiB for the same mistake).
 */
export async function measureOldGrowth(folder: string, tensors: number): Promise<number> {
  const weight = { dtype: "F32", shape: [8, 4], data: new Uint8Array(128) };
  const all = Array.from({ length: tensors }, (_, i) => [`layer.${i}.weight`, weight] as const);
  await saveCheckpoint(`${folder}/small`, { step: 1, tensors: all }, { world: 4 });
  const [program] = await bundled(new URL("./reshard-heap.ts", import.meta.url).pathname);
  const flags = ["--max-semi-space-size=8", "--single-threaded"];
  const args = [program, `${folder}/small`, `${folder}/small3`];
  const ran = spawnSync(process.execPath, [...flags, ...args], { encoding: "utf8", timeout: 240_000 });
  if (ran.status !== 0) throw new Error(ran.stderr);
  return Number(ran.stdout);
}
