/** A program that merges and re-slices a run in a bucket and writes the most memory it held: `s3-memory <endpoint> <cap> <out>`. */
import { writeFileSync } from "node:fs";
import { s3FileSystem } from "../../src/bucket/s3";
import { verifyCheckpoint } from "../../src/read/verify";
import { mergeCheckpoint } from "../../src/rewrite/merge";
import { reshardCheckpoint } from "../../src/rewrite/reshard";
import { saveCheckpoint } from "../../src/save/save";

const [, , endpoint, cap, out] = process.argv;
const credentials = { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" };
const fileSystem = s3FileSystem({ bucket: "bucket", endpoint: endpoint!, credentials });
const maxMemory = Number(cap);
// Everything is used once on next to nothing, so that the base holds the code and its caches.
const warm = { step: 0, tensors: { w: { dtype: "U8", shape: [64], data: new Uint8Array(64) } } };
await saveCheckpoint("warm", warm, { fileSystem, world: 2 });
await mergeCheckpoint("warm", "warm.safetensors", { fileSystem });
await reshardCheckpoint("warm", "warm2", { fileSystem, ranks: 3 });

const base = process.memoryUsage.rss();
async function peakOf(body: Promise<unknown>): Promise<number> {
  let peak = 0;
  const timer = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage.rss());
  }, 5);
  await body;
  clearInterval(timer);
  return peak;
}

const layout = { mesh: { shape: [3], axes: ["x"] }, tensors: { "*": [null, "x"] } };
const merged = await peakOf(mergeCheckpoint("run", "merged.safetensors", { fileSystem, maxMemory }));
const resliced = await peakOf(reshardCheckpoint("run", "resliced", { fileSystem, layout, maxMemory }));
const { ok } = await verifyCheckpoint("resliced", { fileSystem });
writeFileSync(out!, JSON.stringify({ base, merged, resliced, ok }));
