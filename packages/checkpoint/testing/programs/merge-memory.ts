/** A program that merges and re-slices a checkpoint and prints the most memory it ever held: `merge-memory <folder> <cap> <out>`. */

import { writeFileSync } from "node:fs";
import { loadCheckpoint } from "../../src/operations";
import { mergeCheckpoint } from "../../src/rewrite/merge";
import { reshardCheckpoint } from "../../src/rewrite/reshard";
import { saveCheckpoint } from "../../src/save/save";

const [, , folder, cap, out] = process.argv;
// Everything is used once on next to nothing, so that the base holds the code and its caches.
await saveCheckpoint(
  `${out}/warm`,
  { step: 0, tensors: { w: { dtype: "U8", shape: [64], data: new Uint8Array(64) } } },
  { world: 2 },
);
await mergeCheckpoint(`${out}/warm`, `${out}/warm.safetensors`);
await reshardCheckpoint(`${out}/warm`, `${out}/warm2`, { ranks: 3 });
await loadCheckpoint(`${out}/warm2`, { as: "plain" });

// Looked at with every chunk: the process's own peak was reached while it started.
const base = process.memoryUsage.rss();
async function peakOf(body: (progress: () => void) => Promise<unknown>): Promise<number> {
  let peak = 0;
  await body(() => {
    peak = Math.max(peak, process.memoryUsage.rss());
  });
  return peak;
}

const maxMemory = Number(cap);
const layout = { mesh: { shape: [3], axes: ["x"] }, tensors: { "*": [null, "x"] } };
const merged = await peakOf((progress) =>
  mergeCheckpoint(folder!, `${out}/merged.safetensors`, { maxMemory, progress }),
);
const resliced = await peakOf((progress) =>
  reshardCheckpoint(folder!, `${out}/resliced`, { layout, maxMemory, progress }),
);
writeFileSync(`${out}/memory.json`, JSON.stringify({ base, merged, resliced }));
