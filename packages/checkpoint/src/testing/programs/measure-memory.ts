/** How much memory merging takes, measured in a process of its own. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { build } from "esbuild";
import { saveCheckpoint } from "../../save/save";
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
  const built = await build({
    entryPoints: [new URL("./merge-memory.ts", import.meta.url).pathname],
    bundle: true,
    platform: "node",
    format: "esm",
    conditions: ["@opt/source"],
    outfile: `${folder}/merge-memory.mjs`,

    // Some libraries still call require.
    banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
    logLevel: "silent",
  });
  if (built.errors.length > 0) throw new Error("the program does not build");
  const ran = spawnSync(process.execPath, [`${folder}/merge-memory.mjs`, `${folder}/run`, String(cap), folder], {
    encoding: "utf8",
    timeout: 240_000,
  });
  if (ran.status !== 0) throw new Error(ran.stderr);
  return JSON.parse(readFileSync(`${folder}/memory.json`, "utf8"));
}
