import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Layout, loadCheckpoint, localCommunicators, reshardCheckpoint, saveCheckpoint } from "@opt/checkpoint";
import { tensor } from "@opt/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { run } from "./run";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "hybrid-parallel-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("the tutorial", () => {
  it("4 ranks of [2, 8] are merged to [8, 8] and go on as 2 ranks of [4, 8], moments alike, bit for bit", async () => {
    const lines: string[] = [];
    const result = await run(folder, (line) => lines.push(line));
    expect(result).toEqual({ before: [2, 8], after: [4, 8], merged: [8, 8], sameAsUninterrupted: true });
    expect(lines).toHaveLength(4);
    const { tensors } = await loadCheckpoint(join(folder, "two-ranks"), { as: "plain" });
    expect(tensors["moments.fc.weight"]).toMatchObject({ shape: [8, 8], role: "state", follows: "fc.weight" });
    expect(tensors.learning_rate).toMatchObject({ shape: [], role: "scalar" });
  });

  it("[[1,2,3,4],[5,6,7,8]] on a 2x2 mesh: [1,2] [3,4] [5,6] [7,8], reloaded by rows: [1,2,3,4] and [5,6,7,8]", async () => {
    const layout: Layout = { mesh: { shape: [2, 2], axes: ["data", "model"] }, tensors: { w: ["data", "model"] } };
    const pieces = [
      [1, 2],
      [3, 4],
      [5, 6],
      [7, 8],
    ];
    const saves = localCommunicators(4).map((communicator) => {
      const w = tensor([pieces[communicator.rank]!]);
      return saveCheckpoint(
        join(folder, "four"),
        { step: 1, tensors: { w, "moments.w": w.mul(10) } },
        { communicator, layout },
      );
    });
    await Promise.all(saves);
    await reshardCheckpoint(join(folder, "four"), join(folder, "two"), { ranks: 2 });
    for (const [rank, row] of [
      [1, 2, 3, 4],
      [5, 6, 7, 8],
    ].entries()) {
      const { tensors } = await loadCheckpoint(join(folder, "two"), { rank, world: 2 });
      expect([...tensors.w!.dataSync()]).toEqual(row);
      expect([...tensors["moments.w"]!.dataSync()]).toEqual(row.map((value) => 10 * value));
    }
  });
});
