/** Small checkpoints that tests save, and seeded bytes to fill them with. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import type { PlainTensor } from "../tensors";

/** A generator of 32-bit integers (mulberry32). */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return (t ^ (t >>> 14)) >>> 0;
  };
}

export function randomBytes(length: number, seed: number): Uint8Array {
  const next = random(seed);
  return Uint8Array.from({ length }, () => next() & 0xff);
}

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
