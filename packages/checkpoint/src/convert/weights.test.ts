import { tensor } from "@opt/core";
import { describe, expect, it } from "vitest";
import { expectCode } from "../../testing/expect-code";
import { loadCheckpoint, saveCheckpoint, saveWeights } from "../index";
import { memoryFileSystem } from "../stores/memory";

const TENSORS = { "fc.weight": tensor([[1, 2]]), "fc.bias": tensor([3]) };

describe("saveWeights", () => {
  it.each(["safetensors", "npz", "pt", "pth"])(
    "writes model.%s, which loads with the same names and numbers",
    async (end) => {
      const fileSystem = memoryFileSystem();
      const seen: number[] = [];
      await saveWeights(`model.${end}`, TENSORS, { fileSystem, progress: ({ bytes }) => seen.push(bytes) });
      const { tensors, step } = await loadCheckpoint(`model.${end}`, { fileSystem });
      expect(
        Object.entries(tensors)
          .map(([name, each]) => [name, [...each.dataSync()]])
          .sort(),
      ).toEqual([
        ["fc.bias", [3]],
        ["fc.weight", [1, 2]],
      ]);
      expect([step, seen.at(-1)]).toEqual([undefined, 12]);
    },
  );

  it("replaces a file only where it may", async () => {
    const fileSystem = memoryFileSystem();
    await saveWeights("a.safetensors", TENSORS, { fileSystem });
    await expectCode("DUPLICATE", saveWeights("a.safetensors", TENSORS, { fileSystem }));
    await saveWeights("a.safetensors", { w: tensor([5]) }, { fileSystem, overwrite: true });
    expect(Object.keys((await loadCheckpoint("a.safetensors", { fileSystem })).tensors)).toEqual(["w"]);
  });

  it("rejects names that say no format it writes", async () => {
    for (const path of ["model", "model.onnx", "runs/a"])
      expect(await expectCode("BAD_ARGUMENT", saveWeights(path, TENSORS))).toContain(".safetensors");
  });
});

it.each(["model.pt", "runs/model.safetensors", "model.h5"])("saveCheckpoint names it for %s", async (path) => {
  const saved = saveCheckpoint(path, { step: 1, tensors: TENSORS }, { fileSystem: memoryFileSystem() });
  expect(await expectCode("BAD_ARGUMENT", saved)).toContain("saveWeights");
});

it("saveCheckpoint rejects addresses without a store", async () => {
  for (const path of ["https://example.org/a", "gs://bucket/a", "s3://bucket/a"])
    expect(await expectCode("BAD_ARGUMENT", saveCheckpoint(path, { step: 1, tensors: TENSORS }))).toContain(
      "fileSystem",
    );
});
