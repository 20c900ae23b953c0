/** A merged file is a checkpoint: what it was made from can go on from it. */
import { describe, expect, it } from "vitest";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
import { sampleTensors } from "../../testing/fixtures";
import { loadCheckpoint } from "../operations";
import { inspectCheckpoint } from "../read/inspect";
import { saveCheckpoint } from "../save/save";
import { mergeCheckpoint } from "./merge";
import { reshardCheckpoint } from "./reshard";

const values = { epoch: 2, options: { lr: 0.1, offset: -0 }, counters: [1001] };

async function merged(): Promise<MemoryFileSystem> {
  const fileSystem = new MemoryFileSystem();
  const custom = { ...sampleTensors(1).mask!, role: "state", follows: "fc.bias" } as const;
  await saveCheckpoint("/r", { step: 42, tensors: { ...sampleTensors(1), custom }, values }, { world: 3, fileSystem });
  await mergeCheckpoint("/r", "/m.safetensors", { fileSystem });
  return fileSystem;
}

const rolesOf = async (path: string, fileSystem: MemoryFileSystem) =>
  (await inspectCheckpoint(path, { fileSystem })).tensors
    .map(({ name, role, follows }) => [name, role, follows])
    .sort();

describe("a merged file", () => {
  it("gives back the same where its folder is opened", async () => {
    const fileSystem = await merged();
    await fileSystem.makeFolder("/folder");
    await fileSystem.rename("/m.safetensors", "/folder/m.safetensors");
    const loaded = await loadCheckpoint("/folder", { fileSystem, as: "plain" });
    expect({ step: loaded.step, values: loaded.values }).toEqual({ step: 42, values });
    expect(await rolesOf("/folder", fileSystem)).toEqual(await rolesOf("/r", fileSystem));
  });

  it("gives back step, values, roles and bytes; sliced anew and merged again it is the same file", async () => {
    const fileSystem = await merged();
    const [before, after] = await Promise.all(
      ["/r", "/m.safetensors"].map((path) => loadCheckpoint(path, { fileSystem, as: "plain" })),
    );
    expect({ step: after!.step, values: after!.values }).toEqual({ step: 42, values });
    for (const [name, { data }] of Object.entries(before!.tensors)) expect(after!.tensors[name]!.data).toEqual(data);
    const { step, path } = await reshardCheckpoint("/m.safetensors", "/again", { ranks: 2, fileSystem });
    expect([step, path]).toEqual([42, "/again/step-00000042"]);
    for (const other of ["/m.safetensors", "/again"])
      expect(await rolesOf(other, fileSystem)).toEqual(await rolesOf("/r", fileSystem));
    await mergeCheckpoint("/again", "/twice.safetensors", { fileSystem });
    expect(fileSystem.contents("/twice.safetensors")).toEqual(fileSystem.contents("/m.safetensors"));
  });

  it("in another dtype keeps counters, masks and scalars as they are", async () => {
    const fileSystem = new MemoryFileSystem();
    const f32 = (shape: number[], ...numbers: number[]) => ({ dtype: "F32", shape, data: Float32Array.from(numbers) });
    const count = { dtype: "I64", shape: [1], data: BigInt64Array.of(1001n) };
    const tensors = { w: f32([2], 1, 2), "w.step": f32([], 1001), count };
    await saveCheckpoint("/r", { step: 1, tensors }, { fileSystem });
    await mergeCheckpoint("/r", "/m.safetensors", { fileSystem, dtype: "bf16" });
    const { tensors: loaded } = await loadCheckpoint("/m.safetensors", { fileSystem, as: "plain" });
    const dtypes = Object.entries(loaded).map(([name, { dtype }]) => [name, dtype]);
    expect(Object.fromEntries(dtypes)).toEqual({ w: "BF16", "w.step": "F32", count: "I64" });
  });
});
