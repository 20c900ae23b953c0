/** Saves, reads and writes anew a run of many ranks, for a process that may have few files open: `few-files <folder> <ranks>`. */

import { diffCheckpoints } from "../../src/compare/diff";
import { convertCheckpoint } from "../../src/convert/convert";
import { loadCheckpoint } from "../../src/operations";
import { verifyCheckpoint } from "../../src/read/verify";
import { mergeCheckpoint } from "../../src/rewrite/merge";
import { reshardCheckpoint } from "../../src/rewrite/reshard";
import { saveCheckpoint } from "../../src/save/save";

const [, , folder, count] = process.argv;
const ranks = Number(count);
const at = (name: string) => `${folder}/${name}`;
const data = Float32Array.from({ length: 8 * ranks }, (_, i) => i);
await saveCheckpoint(
  at("run"),
  { step: 1, tensors: { w: { dtype: "F32", shape: [8 * ranks], data } } },
  { world: ranks },
);
await Promise.all([1, 2, 3].map(() => loadCheckpoint(at("run"))));
await mergeCheckpoint(at("run"), at("whole.safetensors"));
await reshardCheckpoint(at("run"), at("anew"), { ranks: 2 * ranks });
await convertCheckpoint(at("run"), at("ckpt"), { to: "ckpt", ranks });
const { ok } = await verifyCheckpoint(at("anew"));
for (const other of ["whole.safetensors", "anew", "ckpt"]) {
  const { equal } = await diffCheckpoints(at("run"), at(other));
  process.stdout.write(`${other} ${ok && equal}\n`);
}
