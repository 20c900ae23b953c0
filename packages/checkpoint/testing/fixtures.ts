/** Small checkpoints that tests save, and a folder to save them in. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import type { PlainTensor } from "../src/format/tensors";
import { randomBytes } from "./random";

export { random, randomBytes } from "./random";

/** A parameter, its moment, a scalar and a tensor of bytes, different for each seed. */
export function sampleTensors(seed: number): Record<string, PlainTensor> {
  return {
    "fc.weight": { dtype: "F32", shape: [8, 6], data: randomBytes(192, seed) },
    "moments.fc.weight": { dtype: "F32", shape: [8, 6], data: randomBytes(192, seed + 1) },
    "fc.bias": { dtype: "BF16", shape: [5], data: randomBytes(10, seed + 2) },
    learning_rate: { dtype: "F64", shape: [], data: randomBytes(8, seed + 3) },
    mask: { dtype: "U8", shape: [3, 1, 2], data: randomBytes(6, seed + 4) },
  };
}

/** A folder on the real disk for each test of a file, removed afterwards. */
export function scratchFolder(): { readonly path: string } {
  const scratch = { path: "" };
  beforeEach(() => {
    scratch.path = mkdtempSync(join(tmpdir(), "opt-checkpoint-"));
  });
  afterEach(() => rmSync(scratch.path, { recursive: true, force: true }));
  return scratch;
}
