/** What is told of a run, of a step by its own folder, and of a file, however the path is written. */
import { expect, it } from "vitest";
import { sampleTensors } from "../../testing/fixtures";
import { inspectCheckpoint, mergeCheckpoint, saveCheckpoint } from "../index";
import { memoryFileSystem } from "../stores/memory";

const RUN = { step: 12, steps: [3, 12], world: 2, mesh: { shape: [2], axes: ["rank"] } };
const { steps: _, ...STEP } = RUN;

it.each<[path: string, options: object, expected: object]>([
  ["r", {}, RUN],
  ["r/", {}, RUN],
  ["./r", {}, RUN],
  ["r", { step: 3 }, { ...RUN, step: 3 }],
  ["r", { best: { value: "loss" } }, { ...RUN, step: 3 }],
  ["r/step-00000012", {}, STEP],
  ["r/step-00000012/", {}, STEP],
  ["./r/step-00000012", {}, STEP],
  ["r.safetensors", {}, { step: 12 }],
])("%s %j", async (path, options, expected) => {
  const fileSystem = memoryFileSystem();
  for (const step of [3, 12])
    await saveCheckpoint("r", { step, tensors: sampleTensors(step), values: { loss: step } }, { fileSystem, world: 2 });
  await mergeCheckpoint("r", "r.safetensors", { fileSystem });
  const {
    format,
    path: at,
    files,
    tensors,
    values,
    bytes,
    ...told
  } = await inspectCheckpoint(path, { ...options, fileSystem });
  expect(told).toEqual(expected);
  expect(values).toEqual({ loss: told.step });
  const held = Object.entries(sampleTensors(12)).map(([name, { shape }]) => [name, `${shape}`]);
  expect(tensors.map(({ name, shape }) => [name, `${shape}`]).sort()).toEqual(held.sort());
  expect(bytes).toBe(tensors.reduce((sum, tensor) => sum + tensor.bytes, 0));
  expect(files?.length).toBe("world" in expected ? 2 : undefined);
});
