/** What a save rejects before it writes, and what it takes. */
import { describe, expect, it } from "vitest";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
import { readManifest } from "../format/manifest";
import { listSteps } from "../format/steps";
import type { Layout } from "../layout/layout";
import { singleProcess } from "./ranks/communicator";
import { type CheckpointContents, type SaveOptions, saveCheckpoint } from "./save";

const f32 = (shape: number[], ...values: number[]) => ({ dtype: "f32", shape, data: Float32Array.from(values) });
const one = { step: 1, tensors: { w: f32([2], 1, 2) } };
const rows: Layout = { mesh: { shape: [4], axes: ["model"] }, tensors: { w: ["model"], "*": "replicate" } };

describe("saveCheckpoint", () => {
  it.each<[string, Partial<CheckpointContents>, SaveOptions, string]>([
    ["a step that is no number", { step: -1 }, {}, "BAD_ARGUMENT"],
    ["a rank outside the world", {}, { communicator: { ...singleProcess(), rank: 1 } }, "BAD_ARGUMENT"],
    ["a world that is not the mesh's", {}, { communicator: singleProcess(), layout: rows }, "BAD_ARGUMENT"],
    ["keep: 0", {}, { keep: 0 }, "BAD_ARGUMENT"],
    ["values that JSON would change", { values: { lr: Number.NaN } }, {}, "BAD_ARGUMENT"],
    ["a value that JSON would leave out", { values: { best: undefined } }, {}, "BAD_ARGUMENT"],
    ["values that JSON would drop", { values: { state: new Map() } }, {}, "BAD_ARGUMENT"],
    ["a tensor of an unknown dtype", { tensors: { w: { ...f32([1], 1), dtype: "f31" } } }, {}, "BAD_DTYPE"],
    ["data of another width", { tensors: { w: { ...f32([1], 1), dtype: "f64" } } }, {}, "BAD_DTYPE"],
    ["integers as floats", { tensors: { w: { ...f32([1], 1), data: Int32Array.of(1) } } }, {}, "BAD_DTYPE"],
    ["floats as integers", { tensors: { w: { ...f32([1], 1), dtype: "i32" } } }, {}, "BAD_DTYPE"],
    ["tensors that are a promise", { tensors: Promise.resolve({ w: f32([1], 1) }) as never }, {}, "BAD_ARGUMENT"],
    [
      "tensors behind getters",
      {
        tensors: new (class {
          get w() {
            return 1;
          }
        })() as never,
      },
      {},
      "BAD_ARGUMENT",
    ],
    ["a communicator without its methods", {}, { communicator: { rank: 0, size: 2 } as never }, "BAD_ARGUMENT"],
    ["data of another length", { tensors: { w: f32([3], 1, 2) } }, {}, "BAD_SHAPE"],
    ["an invalid shape", { tensors: { w: f32([-1], 1) } }, {}, "BAD_SHAPE"],
    ["tensors without names", { tensors: [f32([1], 1), f32([1], 2)] as never }, {}, "BAD_ARGUMENT"],
    ["no tensors", { tensors: null as never }, {}, "BAD_ARGUMENT"],
    [
      "a name twice",
      {
        tensors: [
          ["w", f32([1], 1)],
          ["w", f32([1], 2)],
        ],
      },
      {},
      "DUPLICATE",
    ],
    [
      "a slice that the layout does not give",
      { tensors: { v: f32([1], 1) } },
      {
        layout: { mesh: { shape: [1], axes: ["model"] }, tensors: { v: { boxes: [[{ offset: [0], size: [8] }]] } } },
        communicator: singleProcess(),
      },
      "BAD_SHAPE",
    ],
    ["a step that is not whole", { step: 1.5 }, {}, "BAD_ARGUMENT"],
    ["a world that is not the mesh's, of all ranks", {}, { world: 3, layout: rows }, "BAD_ARGUMENT"],
    ["a world that is not the communicator's", {}, { communicator: singleProcess(), world: 2 }, "BAD_ARGUMENT"],
    ["a rank without a communicator", {}, { rank: 0, world: 2 } as SaveOptions, "BAD_ARGUMENT"],
    ["an option that there is not", {}, { patience: 1 } as SaveOptions, "BAD_ARGUMENT"],
    ["contents that there are not", { step: 1, tensor: {} } as Partial<CheckpointContents>, {}, "BAD_ARGUMENT"],
  ])("rejects %s before it writes", async (_, contents, options, code) => {
    const fileSystem = new MemoryFileSystem();
    const saving = saveCheckpoint("/r", { ...one, ...contents }, { ...options, fileSystem });
    await expect(saving.copied).rejects.toMatchObject({ code });
    await expect(saving).rejects.toMatchObject({ code });
    expect(await fileSystem.kind("/r/step-00000001")).toBeUndefined();
  });

  it.each([0, 1.5, -1, Number.NaN])("rejects a world of %d before a layout is made of it", async (world) => {
    const message = expect.stringMatching(/world must be a positive whole number/);
    await expect(saveCheckpoint("/r", one, { world })).rejects.toMatchObject({ code: "BAD_ARGUMENT", message });
  });

  it("tells ranks without a communicator what to do", async () => {
    const saving = saveCheckpoint("/r", one, { rank: 0, world: 2 } as SaveOptions);
    await expect(saving).rejects.toMatchObject({ message: expect.stringMatching(/Give communicator/) });
  });

  it("rejects an invalid folder", async () => {
    await expect(saveCheckpoint("", one)).rejects.toMatchObject({ code: "BAD_ARGUMENT" });
  });

  it.each<[string, SaveOptions, number]>([
    ["nothing but the step", {}, 1],
    ["a world", { world: 2 }, 2],
    ["the mesh's world, said or not", { layout: rows, world: 4 }, 4],
    ["the mesh's world", { layout: rows }, 4],
    ["the only rank", { communicator: singleProcess() }, 1],
    [
      "the only rank of a mesh",
      { communicator: singleProcess(), layout: { mesh: { shape: [1], axes: ["x"] }, tensors: { "*": "replicate" } } },
      1,
    ],
    ["a communicator and what it says itself", { communicator: singleProcess(), world: 1 }, 1],
  ])("takes %s", async (_, options, ranks) => {
    const fileSystem = new MemoryFileSystem();
    const contents = { step: 0, tensors: { w: f32([4], 1, 2, 3, 4) } };
    const { path } = await saveCheckpoint("/r", contents, { ...options, fileSystem });
    const { files, mesh } = await readManifest(fileSystem, path);
    expect([files.length, mesh.shape.reduce((a, b) => a * b, 1)]).toEqual([ranks, ranks]);
    expect(await listSteps(fileSystem, "/r")).toEqual([{ step: 0, path }]);
  });
});
