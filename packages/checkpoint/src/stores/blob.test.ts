import { expect, it } from "vitest";
import { expectCode } from "../../testing/expect-code";
import { sampleTensors } from "../../testing/fixtures";
import { loadCheckpoint } from "../operations";
import { inspectCheckpoint } from "../read/inspect";
import { checkpointBlob } from "../rewrite/merge";
import { saveCheckpoint } from "../save/save";
import { blobFileSystem } from "./blob";
import { memoryFileSystem } from "./memory";

const contents = { step: 7, tensors: sampleTensors(1), values: { epoch: 2 } };

it("a checkpoint becomes a file, and the file a checkpoint", async () => {
  const blob = await checkpointBlob(contents);
  const loaded = await loadCheckpoint(blob, { as: "plain" });
  expect({ step: loaded.step, values: loaded.values }).toEqual({ step: 7, values: { epoch: 2 } });
  for (const [name, { data }] of Object.entries(contents.tensors)) expect(loaded.tensors[name]!.data).toEqual(data);
  expect(loaded.tensors["moments.fc.weight"]!.follows).toBe("fc.weight");
  const file = new File([blob], "digits.safetensors");
  expect(await inspectCheckpoint(file)).toMatchObject({ format: "safetensors", step: 7, path: "digits.safetensors" });
});

it("boxes make a whole, a hole is named", async () => {
  const half = (offset: number) => ({ offset: [offset], size: [2], data: Float32Array.of(offset, offset + 1) });
  const tensors = { w: { dtype: "f32", shape: [4], boxes: [half(2), half(0)] } };
  const { tensors: loaded } = await loadCheckpoint(await checkpointBlob({ step: 0, tensors }));
  expect([...loaded.w!.dataSync()]).toEqual([0, 1, 2, 3]);
  const hole = { w: { dtype: "f32", shape: [4], boxes: [half(2)] } };
  await expectCode("MISSING", checkpointBlob({ step: 0, tensors: hole }));
  await expectCode("BAD_ARGUMENT", checkpointBlob({ step: -1, tensors: {} }));
  expect((await loadCheckpoint(await checkpointBlob({ step: 1, tensors: {} }))).tensors).toEqual({});
});

it("the files of a chosen folder are a step", async () => {
  const fileSystem = memoryFileSystem();
  const { path } = await saveCheckpoint("run", contents, { fileSystem, world: 2 });
  const files = await Promise.all(
    (await fileSystem.list(path)).map(({ name }) => {
      const file = new File([fileSystem.blob(`${path}/${name}`)], name);
      return Object.assign(file, { webkitRelativePath: `${path}/${name}` });
    }),
  );
  const { tensors } = await loadCheckpoint("run", { fileSystem: blobFileSystem(files), as: "plain" });
  expect(tensors["fc.weight"]!.data).toEqual(contents.tensors["fc.weight"]!.data);
  await expectCode("IO", saveCheckpoint("run", { ...contents, step: 8 }, { fileSystem: blobFileSystem(files) }));
});

it.each([
  [1, "1 bytes are missing"],
  [200, "200 bytes are missing"],
  [-12, "at least 12 bytes are missing"],
])("a file that is cut off by %i is rejected with how many", async (cut, words) => {
  const blob = await checkpointBlob(contents);
  const header = 8 + Number(new DataView(await blob.slice(0, 8).arrayBuffer()).getBigUint64(0, true));
  const rest = blob.slice(0, cut < 0 ? header - 12 : -cut);
  expect(await expectCode("CORRUPT", loadCheckpoint(rest))).toContain(words);
});

it("what is no file is rejected", async () => {
  await expectCode("UNSUPPORTED", loadCheckpoint(new Blob(["not a checkpoint"])));
  await expectCode("BAD_ARGUMENT", loadCheckpoint({} as never));
});
