import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadCheckpoint, localCommunicators, mergeCheckpoint, reshardCheckpoint, saveCheckpoint } from "./index";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "opt-checkpoint-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const weight = Float32Array.from({ length: 64 }, (_, i) => i + 1);
const moments = weight.map((value) => -value);
const rows = (all: Float32Array, rank: number, count: number) => all.slice(rank * count * 8, (rank + 1) * count * 8);

function slices(rank: number) {
  return {
    "fc.weight": { dtype: "f32", shape: [2, 8], data: rows(weight, rank, 2) },
    "moments.fc.weight": { dtype: "f32", shape: [2, 8], data: rows(moments, rank, 2) },
    learning_rate: { dtype: "f32", shape: [], data: new Float32Array([0.1]) },
  };
}

describe("four ranks of [2, 8]", () => {
  beforeEach(async () => {
    const saves = localCommunicators(4).map((communicator) =>
      saveCheckpoint(
        join(folder, "run"),
        { step: 7, tensors: slices(communicator.rank), values: { epoch: 1 } },
        { communicator },
      ),
    );
    await Promise.all(saves);
  });

  it("load whole", async () => {
    const { tensors, step, values, unverified } = await loadCheckpoint(join(folder, "run"));
    expect(await tensors["fc.weight"]!.data()).toEqual(weight);
    expect(await tensors["moments.fc.weight"]!.data()).toEqual(moments);
    expect({ step, values, unverified }).toEqual({ step: 7, values: { epoch: 1 }, unverified: [] });
  });

  it("merge into one file", async () => {
    const file = join(folder, "model.safetensors");
    await mergeCheckpoint(join(folder, "run"), file);
    expect(readFileSync(file).includes(Buffer.from(weight.buffer))).toBe(true);
    const { tensors } = await loadCheckpoint(file);
    expect(await tensors["fc.weight"]!.data()).toEqual(weight);
  });

  it("re-slice to two ranks of [4, 8], the moments alike", async () => {
    await reshardCheckpoint(join(folder, "run"), join(folder, "two"), { ranks: 2 });
    for (const rank of [0, 1]) {
      const { tensors } = await loadCheckpoint(join(folder, "two"), { rank, world: 2, as: "plain" });
      expect(tensors["fc.weight"]).toMatchObject({
        shape: [4, 8],
        offset: [4 * rank, 0],
        wholeShape: [8, 8],
        role: "param",
      });
      expect(new Float32Array(tensors["fc.weight"]!.data.buffer)).toEqual(rows(weight, rank, 4));
      expect(tensors["moments.fc.weight"]).toMatchObject({ role: "state", follows: "fc.weight" });
      expect(new Float32Array(tensors["moments.fc.weight"]!.data.buffer)).toEqual(rows(moments, rank, 4));
    }
  });
});
