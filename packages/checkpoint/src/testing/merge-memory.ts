/** A program that merges and re-slices a checkpoint and prints the most memory it ever held: `merge-memory <folder> <cap> <out>`. */

import { writeFileSync } from "node:fs";
import { loadCheckpoint } from "../load";
import { mergeCheckpoint } from "../merge";
import { reshardCheckpoint } from "../reshard";
import { saveCheckpoint } from "../save";

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
const base = process.resourceUsage().maxRSS * 1024;
await mergeCheckpoint(folder!, `${out}/merged.safetensors`, { maxMemory: Number(cap) });
const merged = process.resourceUsage().maxRSS * 1024;
await reshardCheckpoint(folder!, `${out}/resliced`, {
  layout: { mesh: { shape: [3], axes: ["x"] }, tensors: { "*": [null, "x"] } },
  maxMemory: Number(cap),
});
const resliced = process.resourceUsage().maxRSS * 1024;
writeFileSync(`${out}/memory.json`, JSON.stringify({ base, merged, resliced }));
