import { expect, it } from "vitest";
import { expectCode } from "../../../testing/expect-code";
import { floats, torchScript, torchTensorCall } from "../../../testing/files/made-files";
import { Call, Name, Tuple } from "../../../testing/files/pickles";
import { openFiles } from "../../../testing/open-files";
import { readFloats } from "../../../testing/read-tensor";

const STORAGES = { 0: floats(1, 2), 1: floats(3, 4) };
const typed = (name: string, ...args: unknown[]) => new Call(new Name("torch.jit._pickle", name), args);

it("gives the attributes of nested modules, typed lists, and the code's constants", async () => {
  const inner = new Call(new Name("__torch__.torch.nn.modules.linear", "Linear"), [], {
    weight: torchTensorCall("0", [2]),
    _is_full_backward_hook: null,
    sizes: typed("build_intlist", [2, 3]),
  });
  const module = {
    fc: inner,
    training: false,
    kept: typed("restore_type_tag", { a: torchTensorCall("1", [2]) }, "Dict"),
  };
  const source = await openFiles({ "a.pt": torchScript(module, STORAGES, new Tuple(torchTensorCall("1", [2]))) });
  expect([source.format, [...source.tensors.keys()], source.values]).toEqual([
    "TorchScript",
    ["fc.weight", "kept.a", "constants.0"],
    { training: false, "fc.sizes.0": 2, "fc.sizes.1": 3 },
  ]);
  expect(await readFloats(source, "fc.weight")).toEqual([1, 2]);
  expect(await readFloats(source, "constants.0")).toEqual([3, 4]);
});

it("rejects calls of what is no class of the archive", async () => {
  const call = new Call(new Name("os", "system"), ["true"]);
  await expectCode("REFUSED", openFiles({ "a.pt": torchScript({ call }, {}) }));
});
