import { describe, expect, it } from "vitest";
import * as made from "../../testing/files/made-files";
import { STATE, STORAGES } from "../../testing/files/torch-state";
import { openFiles } from "../../testing/open-files";
import { readFloats } from "../../testing/read-tensor";
import { underOurNames } from "./names";

const { floats, torchTensorCall } = made;
type Files = Record<string, Uint8Array>;

describe("our names", () => {
  it.each<[string, Files, string, Record<string, string>, Record<string, number[]>]>([
    [
      "PyTorch by the model's order",
      { "a.pt": made.torchZip(STATE, STORAGES) },
      "a.pt",
      {},
      { "fc.weight": [1, 2, 3, 4, 5, 6], "fc.bias.exp_avg": [15, 16], "fc.bias.step": [5] },
    ],
    [
      "PyTorch by param_names",
      {
        "a.pt": made.torchZip(
          {
            state: new Map([[0, { exp_avg: torchTensorCall("1", [2]) }]]),
            param_groups: [{ params: [0], param_names: ["b"] }],
          },
          STORAGES,
        ),
      },
      "a.pt",
      {},
      { "b.exp_avg": [7, 8] },
    ],
    [
      "PyTorch by the map",
      {
        "a.pt": made.torchZip(
          { state: new Map([[0, { exp_avg: torchTensorCall("1", [2]) }]]), param_groups: [{ params: [0] }] },
          STORAGES,
        ),
      },
      "a.pt",
      { "state.0": "head.bias" },
      { "head.bias.exp_avg": [7, 8] },
    ],
    [
      "MindSpore's prefixes",
      {
        "a.ckpt": made.mindsporeFile([
          ["fc.w", [2], "Float32", floats(1, 2)],
          ["moment1.fc.w", [2], "Float32", floats(3, 4)],
          ["moment2.fc.w", [2], "Float32", floats(5, 6)],
          ["global_step", [1], "Int32", Uint8Array.of(9, 0, 0, 0)],
        ]),
      },
      "a.ckpt",
      {},
      { "fc.w.exp_avg": [3, 4], "fc.w.exp_avg_sq": [5, 6], "fc.w.step": [9] },
    ],
    ["TF.js", made.tfjsFolder(), "", { "dense/kernel": "dense.weight" }, { "dense.weight": [1, 2, 3, 4] }],
    [
      "TF.js without a map",
      made.tfjsFolder(),
      "",
      {},
      { "dense/kernel.exp_avg": [5, 6, 7, 8], "dense/kernel.exp_avg_sq": [9, 10, 11, 12], "dense/kernel.step": [7] },
    ],
  ])("are found for %s", async (_, files, name, map, tensors) => {
    const source = await underOurNames(await openFiles(files, name), { map });
    for (const [key, expected] of Object.entries(tensors))
      expect([key, await readFloats(source, key)]).toEqual([key, expected]);
    for (const { name: key, role, follows } of source.tensors.values()) {
      if (/\.(exp_avg|exp_avg_sq|step)$/.test(key) && source.tensors.has(key.replace(/\.\w+$/, ""))) {
        expect([key, role, follows]).toEqual([key, "state", key.replace(/\.\w+$/, "")]);
      }
    }
  });

  it("are found for Keras by the config's layers", async () => {
    const { keras } = await made.kerasFile();
    const source = await underOurNames(await openFiles({ "a.keras": keras }));
    expect(await readFloats(source, "layers/dense/vars/0.exp_avg_sq")).toEqual([20, 21, 22, 23, 24, 25]);
    expect(await readFloats(source, "layers/dense/vars/1.exp_avg")).toEqual([30, 31, 32]);
    expect(await readFloats(source, "layers/dense/vars/1.step")).toEqual([42]);
    await source.close();
  });
});
