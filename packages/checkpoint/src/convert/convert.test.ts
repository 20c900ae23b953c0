import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { expectCode } from "../../testing/expect-code";
import { floats, mindsporeFile, numpyCall, torchTensorCall, torchZip } from "../../testing/files/made-files";
import { pickleOf } from "../../testing/files/pickles";
import { scratchFolder } from "../../testing/fixtures";
import { readFloats } from "../../testing/read-tensor";
import { openSource } from "../read/open";
import { type ConvertTarget, convertCheckpoint } from "./convert";

const scratch = scratchFolder();
const STORAGES = { 0: floats(1, 2), 1: floats(3, 4), 2: floats(5, 6) };

function torchRun(): string {
  const moments = { step: 2, exp_avg: torchTensorCall("1", [2]), exp_avg_sq: torchTensorCall("2", [2]) };
  const optimizer = { state: new Map([[0, moments]]), param_groups: [{ lr: 0.1, params: [0] }] };
  const path = join(scratch.path, "run.pt");
  writeFileSync(path, torchZip({ model: { "fc.bias": torchTensorCall("0", [2]) }, optimizer }, STORAGES));
  return path;
}

describe("convertCheckpoint", () => {
  it.each<[ConvertTarget, string, string, string]>([
    ["safetensors", "out.safetensors", "fc.bias", "fc.bias.exp_avg_sq"],
    ["checkpoint", "out", "fc.bias", "fc.bias.exp_avg_sq"],
    ["ckpt", "out.ckpt", "fc.bias", "moment2.fc.bias"],
  ])("takes a PyTorch run with its optimizer to %s", async (to, name, parameter, state) => {
    const out = join(scratch.path, name);
    const result = await convertCheckpoint(torchRun(), out, { to });
    expect(result).toMatchObject({ from: "PyTorch", to, tensors: 4 });
    const source = await openSource(out);
    expect(await readFloats(source, parameter)).toEqual([1, 2]);
    expect(await readFloats(source, state)).toEqual([5, 6]);
    expect(await readFloats(source, "fc.bias.step")).toEqual([2]);
    await source.close();
  });

  it("comes back from MindSpore as it went, by the map where the format does not tell", async () => {
    const [there, back] = [join(scratch.path, "a.ckpt"), join(scratch.path, "b")];
    writeFileSync(
      there,
      mindsporeFile([
        ["w", [2], "Float32", floats(1, 2)],
        ["my_m.w", [2], "Float32", floats(3, 4)],
      ]),
    );
    await convertCheckpoint(there, back, { to: "checkpoint", map: { "my_m.w": "w.exp_avg" } });
    const source = await openSource(back);
    expect(source.tensors.get("w.exp_avg")).toMatchObject({ role: "state", follows: "w" });
    await source.close();
  });

  it("rejects an unknown target, and a map that names nothing", async () => {
    const out = join(scratch.path, "out");
    await expectCode("BAD_ARGUMENT", convertCheckpoint(torchRun(), out, { to: "onnx" as ConvertTarget }));
    await expectCode("MISSING", convertCheckpoint(torchRun(), out, { to: "checkpoint", map: { nothing: "x" } }));
  });

  it("leaves out and renames what is asked for: states, groups and PyTorch's nesting follow", async () => {
    const [ours, back] = [join(scratch.path, "ours"), join(scratch.path, "back.pt")];
    const rename = { "fc.*": "head.*" };
    await convertCheckpoint(torchRun(), ours, { to: "checkpoint", rename, exclude: ["optimizer.state.0.exp_avg_sq"] });
    const source = await openSource(ours);
    expect([...source.tensors.keys()]).toEqual(["head.bias", "head.bias.exp_avg", "head.bias.step"]);
    expect(source.tensors.get("head.bias.exp_avg")).toMatchObject({ follows: "head.bias" });
    expect(source.values.optimizer).toMatchObject({ groups: [{ params: ["head.bias"], lr: 0.1 }] });
    await source.close();
    await convertCheckpoint(ours, back, { to: "pt" });
    const file = await openSource(back);
    expect([...file.tensors.keys()].sort()).toEqual(["model.head.bias", "optimizer.state.0.exp_avg"]);
    await file.close();
  });

  it.each([
    ["BAD_ARGUMENT", { exclude: ["nothing.*"] }],
    ["BAD_ARGUMENT", { exclude: ["*"] }],
    ["BAD_ARGUMENT", { rename: { "nothing.*": "x" } }],
    ["DUPLICATE", { rename: { "*.exp_avg*": "x" } }],
    ["BAD_ARGUMENT", { parameterOrder: "any" as "model" }],
    ["BAD_ARGUMENT", { excludes: ["x"] }],
    ["BAD_ARGUMENT", { exclude: "x" }],
  ] as const)("rejects (%s) %j", async (code, options) => {
    await expectCode(
      code,
      convertCheckpoint(torchRun(), join(scratch.path, "x"), { to: "safetensors", ...(options as object) }),
    );
  });

  it("takes a model and its optimizer from two files, and rejects none", async () => {
    const [model, optimizer, out] = ["m.pdparams", "o.pdopt", "out"].map((name) => join(scratch.path, name));
    const table = { "fc.w": "linear_0.w_0", "fc.b": "linear_0.b_0" };
    const state = {
      "linear_0.w_0_moment1_0": numpyCall([2], floats(3, 4)),
      "linear_0.b_0_moment2_max_0": numpyCall([2], floats(5, 6)),
    };
    const params = { "fc.w": numpyCall([2], floats(1, 2)), "fc.b": numpyCall([2], floats(1, 2)) };
    writeFileSync(model!, pickleOf({ ...params, "StructuredToParameterName@@": table }));
    writeFileSync(optimizer!, pickleOf(state));
    await convertCheckpoint([model!, optimizer!], out!, { to: "checkpoint" });
    const source = await openSource(out!);
    expect(await readFloats(source, "fc.w.exp_avg")).toEqual([3, 4]);
    expect(await readFloats(source, "fc.b.max_exp_avg_sq")).toEqual([5, 6]);
    await source.close();
    writeFileSync(model!, pickleOf(params));
    await expectCode("BAD_STATE", convertCheckpoint([model!, optimizer!], out!, { to: "checkpoint", overwrite: true }));
    await expectCode("BAD_ARGUMENT", convertCheckpoint([], out!, { to: "checkpoint" }));
  });
});
