// Options that other people's pickles need, in every function that reads one.
import { beforeAll, describe, expect, it } from "vitest";
import { expectCode } from "../../testing/expect-code";
import { torchTensorCall, torchZip } from "../../testing/files/made-files";
import { STATE, STORAGES } from "../../testing/files/torch-state";
import {
  convertCheckpoint,
  diffCheckpoints,
  explainCheckpoint,
  inspectCheckpoint,
  loadCheckpoint,
  mergeCheckpoint,
  openSource,
  reshardCheckpoint,
  verifyCheckpoint,
} from "../operations";
import { memoryFileSystem } from "../stores/memory";

const fileSystem = memoryFileSystem();
const PLAIN = { weight: torchTensorCall("0", [2, 3]), other: torchTensorCall("2", [2, 3]) };
/** Its parameters have one shape: nothing but their order, or a map, says whose a state is. */
const ALIKE = {
  model: PLAIN,
  optimizer: {
    state: new Map([
      [0, { exp_avg: torchTensorCall("0", [2, 3]) }],
      [1, { exp_avg: torchTensorCall("2", [2, 3]) }],
    ]),
    param_groups: [{ lr: 0.5, params: [0, 1] }],
  },
};

beforeAll(async () => {
  for (const [path, object] of Object.entries({ "a.pt": STATE, "alike.pt": ALIKE })) {
    const file = await fileSystem.open(path, "create");
    await file.write(torchZip(object, STORAGES), 0);
    await file.finish();
    await file.close();
  }
});

describe.each([
  ["enough", 1000],
  ["too few", 5],
])("maxObjects of %s", (_, most) => {
  it.each<[string, (maxObjects: number) => Promise<unknown>]>([
    ["load", (maxObjects) => loadCheckpoint("a.pt", { fileSystem, maxObjects })],
    ["inspect", (maxObjects) => inspectCheckpoint("a.pt", { fileSystem, maxObjects })],
    ["explain", (maxObjects) => explainCheckpoint("a.pt", { fileSystem, maxObjects })],
    ["open", async (maxObjects) => (await openSource("a.pt", { fileSystem, maxObjects })).close()],
    ["diff", (maxObjects) => diffCheckpoints("a.pt", "a.pt", { fileSystem, maxObjects })],
    ["merge", (maxObjects) => mergeCheckpoint("a.pt", "m.safetensors", { fileSystem, maxObjects, overwrite: true })],
    ["reshard", (maxObjects) => reshardCheckpoint("a.pt", "r", { fileSystem, maxObjects, ranks: 2, overwrite: true })],
    [
      "convert",
      (maxObjects) =>
        convertCheckpoint("a.pt", "c.safetensors", { fileSystem, maxObjects, to: "safetensors", overwrite: true }),
    ],
  ])("%s", async (_, run) => {
    if (most > 100) await run(most);
    else await expectCode("CORRUPT", run(most));
  });

  it("verify", async () => {
    const verified = verifyCheckpoint("a.pt", { fileSystem, maxObjects: most });
    expect((await verified.catch(() => ({ ok: false }))).ok).toBe(most > 100);
  });
});

it("whose a state is, is told by the model's order or a map, in merge and reshard", async () => {
  const into = { fileSystem, overwrite: true };
  await expectCode("BAD_STATE", mergeCheckpoint("alike.pt", "m.safetensors", into));
  await expectCode("BAD_STATE", reshardCheckpoint("alike.pt", "r", { ...into, ranks: 2 }));
  const map = { "optimizer.state.0": "other", "optimizer.state.1": "weight" };
  const wanted: [() => Promise<unknown>, string, number][] = [
    [
      () => mergeCheckpoint("alike.pt", "m.safetensors", { fileSystem, overwrite: true, parameterOrder: "model" }),
      "m.safetensors",
      1,
    ],
    [() => mergeCheckpoint("alike.pt", "m.safetensors", { fileSystem, overwrite: true, map }), "m.safetensors", 9],
    [
      () => reshardCheckpoint("alike.pt", "r", { fileSystem, overwrite: true, ranks: 2, parameterOrder: "model" }),
      "r",
      1,
    ],
    [() => reshardCheckpoint("alike.pt", "r", { fileSystem, overwrite: true, ranks: 2, map }), "r", 9],
  ];
  for (const [run, path, first] of wanted) {
    await run();
    const { tensors } = await loadCheckpoint(path, { fileSystem });
    expect(tensors["weight.exp_avg"]!.dataSync()[0]).toBe(first);
  }
});
