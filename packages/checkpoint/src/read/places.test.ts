import { mkdirSync, renameSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { expectCode } from "../../testing/expect-code";
import { sampleTensors, scratchFolder } from "../../testing/fixtures";
import { loadCheckpoint } from "../operations";
import { localFileSystem } from "../platform/local";
import { mergeCheckpoint } from "../rewrite/merge";
import { saveCheckpoint } from "../save/save";
import type { FileSystem } from "../stores/file-system";
import { memoryFileSystem } from "../stores/memory";

const scratch = scratchFolder();
const at = (...names: string[]) => join(scratch.path, ...names);
const save = (step: number) => saveCheckpoint(at("run"), { step, tensors: sampleTensors(step) }, { world: 2 });

describe.skipIf(process.platform === "win32")("links (skipped: on Windows not everybody may make them)", () => {
  it("a step that lies elsewhere is one of the run; when it is its turn to go, the link goes", async () => {
    await save(1);
    await save(2);
    renameSync(at("run/step-00000002"), at("elsewhere"));
    symlinkSync(at("elsewhere"), at("run/step-00000002"));
    expect((await loadCheckpoint(at("run"), { as: "plain" })).step).toBe(2);
    await saveCheckpoint(at("run"), { step: 3, tensors: {} }, { keep: 1 });
    await expectCode("MISSING", loadCheckpoint(at("run"), { step: 2 }));
    expect((await loadCheckpoint(at("elsewhere"), { as: "plain" })).step).toBe(2);
  });

  it("a folder of links to files, as Hugging Face's cache has them, is read", async () => {
    await save(1);
    mkdirSync(at("snapshot"));
    await mergeCheckpoint(at("run"), at("blob"));
    symlinkSync("../blob", at("snapshot/model.safetensors"));
    const { tensors } = await loadCheckpoint(at("snapshot"), { as: "plain" });
    expect(tensors["fc.weight"]!.data).toEqual(sampleTensors(1)["fc.weight"]!.data);
  });
});

it.each<[string, FileSystem, boolean]>([
  ["on a disk", localFileSystem, false],
  ["on a disk, to replace another", localFileSystem, true],
  ["in a store that renames nothing", memoryFileSystem(), false],
])("the shards of a save that did not end, %s, are no checkpoint", async (_, fileSystem, overwrite) => {
  const contents = { step: 1, tensors: sampleTensors(1) };
  const { path } = await saveCheckpoint(at("run"), contents, { world: 2, fileSystem, overwrite });
  await fileSystem.remove(join(path, "manifest.json"));
  const message = await expectCode("MISSING", loadCheckpoint(path, { fileSystem }));
  expect(message).toMatch(/this step was never saved whole/);
});
