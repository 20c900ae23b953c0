/** A step is of one moment: tensors that are overwritten while they are saved. */
import { init, tensor } from "@opt/core";
import { expect, it } from "vitest";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
import { loadCheckpoint } from "../operations";
import { localCommunicators } from "./ranks/communicator";
import { type SaveOptions, saveCheckpoint } from "./save";

await init("js");

it.each<[string, SaveOptions]>([
  ["one process", {}],
  ["one process for two ranks", { world: 2 }],
  ["a rank", { communicator: localCommunicators(1)[0]! }],
])("a save of %s fails, and no step is there", async (_, options) => {
  const [fileSystem, w] = [new MemoryFileSystem(), tensor([1, 2])];
  const saving = saveCheckpoint("/r", { step: 1, tensors: { w } }, { ...options, fileSystem });
  w.set([3, 4]);
  await expect(saving).rejects.toMatchObject({ code: "CHANGED", where: 'tensor "w"' });
  expect(await fileSystem.kind("/r/step-00000001")).toBeUndefined();
});

it.each([{ async: true }, { async: true, world: 2 }])("a save with %o has copied them", async (options) => {
  const [fileSystem, w] = [new MemoryFileSystem(), tensor([1, 2])];
  const saving = saveCheckpoint("/r", { step: 1, tensors: { w } }, { ...options, fileSystem });
  w.set([3, 4]);
  await saving;
  expect([...(await loadCheckpoint("/r", { fileSystem })).tensors.w!.dataSync()]).toEqual([1, 2]);
});
