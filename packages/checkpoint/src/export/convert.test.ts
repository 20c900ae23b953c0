import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openSource } from "../read/open";
import { expectCode } from "../testing/expect-code";
import { scratchFolder } from "../testing/fixtures";
import { floats, mindsporeFile, torchTensorCall, torchZip } from "../testing/made-files";
import { readFloats } from "../testing/read-tensor";
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

  it("refuses an unknown target, and a map that names nothing", async () => {
    const out = join(scratch.path, "out");
    await expectCode("BAD_ARGUMENT", convertCheckpoint(torchRun(), out, { to: "onnx" as ConvertTarget }));
    await expectCode("MISSING", convertCheckpoint(torchRun(), out, { to: "checkpoint", map: { nothing: "x" } }));
  });
});
