import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { expectCode } from "../../testing/expect-code";
import { floats, torchTensorCall, torchZip } from "../../testing/files/made-files";
import { Call } from "../../testing/files/pickles";
import { torchFile } from "../../testing/files/torch-files";
import { scratchFolder } from "../../testing/fixtures";
import { convertCheckpoint } from "../convert/convert";
import { loadCheckpoint } from "../operations";
import { mergeCheckpoint } from "../rewrite/merge";
import { inspectCheckpoint } from "./inspect";

const scratch = scratchFolder();
const UNREADABLE = ["complex128", "quantized", "sparse"];

describe.each([
  ["unreadable.pt", [...UNREADABLE, "float4"].sort()],
  ["unreadable_legacy.pt", UNREADABLE],
])("tensors of element types that are not known (%s)", (name, unreadable) => {
  const path = torchFile(name);

  it("are listed with the reason, and leave the others readable", async () => {
    const inspection = await inspectCheckpoint(path);
    expect(Object.keys(inspection.unreadable!).sort()).toEqual(unreadable);
    const { tensors } = await loadCheckpoint(path, { names: ["w"] });
    expect([...tensors.w!.dataSync()]).toEqual([0, 1, 2]);
    const plain = await loadCheckpoint(path, { names: ["w", "counter"], as: "plain" });
    expect(plain.tensors.counter).toMatchObject({ dtype: "I64", shape: [] });
  });

  it("are rejected when they are asked for: by name, by pattern, or with everything", async () => {
    expect(await expectCode("UNSUPPORTED", loadCheckpoint(path, { names: ["sparse"] }))).toContain('"sparse"');
    await expectCode("UNSUPPORTED", loadCheckpoint(path, { names: ["*"] }));
    await expectCode("UNSUPPORTED", mergeCheckpoint(path, join(scratch.path, "all.safetensors")));
    const exclude = unreadable.map((one) => (one === "sparse" ? "spar*" : one));
    expect(Object.keys((await loadCheckpoint(path, { exclude })).tensors).sort()).toEqual(["counter", "w"]);
    await expectCode("BAD_ARGUMENT", loadCheckpoint(path, { exclude: ["nothing"] }));
    const { tensors } = await convertCheckpoint(path, join(scratch.path, "rest.pt"), { to: "pt", exclude });
    expect(tensors).toBe(2);
  });
});

/** As torch 2.13 notes `x.conj()` and `x.conj().imag`, whose storage is that of `x`. */
it.each<[string, object, boolean]>([
  ["conjugated", { conj: true }, false],
  ["negated", { neg: true }, false],
  ["neither", { conj: false }, true],
])("a view that is %s when it is used is read as it is meant, or not at all", async (_, changes, isReadable) => {
  const { callable, args } = torchTensorCall("0", [2]);
  const path = join(scratch.path, "view.pt");
  writeFileSync(path, torchZip({ x: new Call(callable, [...args, changes]) }, { 0: floats(1, 2) }));
  if (isReadable) expect([...(await loadCheckpoint(path)).tensors.x!.dataSync()]).toEqual([1, 2]);
  else expect(await expectCode("UNSUPPORTED", loadCheckpoint(path))).toContain(Object.keys(changes)[0]);
});
