// Files that hold more than tensors and plain values: all of that stays inert, and is listed.
import { describe, expect, it } from "vitest";
import { memoryFiles } from "../../../testing/disks/memory-files";
import { expectCode } from "../../../testing/expect-code";
import * as made from "../../../testing/files/made-files";
import { Call, Name, Persistent, Recursive, Tuple } from "../../../testing/files/pickles";
import { loadCheckpoint } from "../../read/load";

const { floats, torchTensorCall } = made;
const W = torchTensorCall("0", [2]);
const STORAGES = { 0: floats(1, 2) };

const object = (name: string, state?: unknown, args: readonly unknown[] = []) => {
  const at = name.lastIndexOf(".");
  return new Call(new Name(name.slice(0, at), name.slice(at + 1)), args, state);
};
const load = async (given: unknown, options = {}) => {
  const fileSystem = memoryFiles({ "a.pt": made.torchZip(given, STORAGES) });
  return loadCheckpoint("/root/a.pt", { as: "plain", fileSystem, ...options });
};
const module = (parameters: object, modules: object = {}, rest: object = {}) =>
  object("torch.nn.modules.module.Module", {
    training: true,
    _parameters: parameters,
    _buffers: {},
    _modules: modules,
    ...rest,
  });

describe("objects of classes that are no data", () => {
  it.each<[string, unknown, string, Record<string, unknown>]>([
    ["a Namespace", object("argparse.Namespace", { lr: 0.5 }), "argparse.Namespace", { "x.lr": 0.5 }],
    ["a path", object("pathlib.PosixPath", undefined, ["a", "b"]), "pathlib.PosixPath", {}],
    ["an Enum", object("__main__.Color", undefined, [1]), "__main__.Color", {}],
    ["an Enum of Python 3.11.2", object("builtins.getattr", undefined, [1, "RED"]), "builtins.getattr", {}],
    ["a function", new Name("__main__", "collate"), "__main__.collate", {}],
    ["attributes in slots", object("__main__.Slots", new Tuple(null, { a: 1 }), []), "__main__.Slots", { "x.a": 1 }],
    [
      "an array of texts",
      object(
        "numpy._core.multiarray._reconstruct",
        new Tuple(1, new Tuple(1), object("numpy.dtype", undefined, ["U2"]), false, new Uint8Array(8)),
      ),
      "a numpy array of U2",
      {},
    ],
  ])("%s is listed, and the tensors are read", async (_, x, what, values) => {
    const loaded = await load({ w: W, x });
    expect(Object.keys(loaded.tensors)).toEqual(["w"]);
    expect([loaded.skipped, loaded.values]).toEqual([[{ name: "x", what }], values]);
  });

  it("an Enum that is a key is listed under the name of its entry", async () => {
    const { tensors, skipped } = await load({ w: W, x: new Map([[object("__main__.Color", undefined, [1]), W]]) });
    const [, name] = Object.keys(tensors);
    expect(skipped).toEqual([{ name, what: "the key of it is __main__.Color" }]);
  });

  it("a module has the names of its state_dict", async () => {
    const inner = module({ weight: W, bias: null });
    const { tensors, skipped } = await load({ model: module({ scale: W }, { "0": inner, "1": inner }), epoch: 3 });
    expect(Object.keys(tensors)).toEqual(["model.scale", "model.0.weight", "model.1.weight"]);
    expect(skipped).toEqual([{ name: "model", what: "torch.nn.modules.module.Module" }]);
    expect(Object.keys((await load(module({}, { "0": inner }))).tensors)).toEqual(["0.weight"]);
  });

  it("a module's buffers that are not persistent are left out", async () => {
    const buffers = {
      _buffers: { mean: W, mask: W },
      _non_persistent_buffers_set: object("builtins.set", undefined, [["mask"]]),
    };
    expect(Object.keys((await load(module({}, {}, buffers))).tensors)).toEqual(["mean"]);
  });

  it("a tensor of a known class is the tensor", async () => {
    const { callable, args } = W as unknown as Call;
    const buffer = new Name("torch.nn.parameter", "Buffer");
    const { tensors } = await load({
      w: object("torch._tensor._rebuild_from_type_v2", undefined, [callable, buffer, new Tuple(...args), {}]),
    });
    expect(tensors.w!.shape).toEqual([2]);
  });

  it("keys that hold objects are called by their places", async () => {
    const { tensors } = await load({ state: new Map([[object("a.B", undefined, [object("a.C")]), { m: W }]]) });
    expect(Object.keys(tensors)).toEqual(["state.#0.m"]);
  });

  it("a class beside its source, as before 1.6, is a name", async () => {
    const cls = new Persistent(new Tuple("module", new Name("torch.nn", "Linear"), "f.py", "source"));
    const bytes = made.legacyTorch({ w: W, x: { c: cls } }, STORAGES);
    const fileSystem = memoryFiles({ "a.pt": bytes });
    expect(Object.keys((await loadCheckpoint("/root/a.pt", { fileSystem })).tensors)).toEqual(["w"]);
  });

  it("what attackers call is refused by name, wherever it stands", async () => {
    for (const name of ["os.system", "posix.system", "subprocess.Popen", "builtins.eval", "runpy.run_path"])
      expect(await expectCode("REFUSED", load({ w: W, x: object(name, undefined, ["true"]) }))).toContain(name);
  });
});

it("names of sys and socket are noted, as any other class", async () => {
  for (const name of ["sys.flags", "socket.AddressFamily", "code.models.Net"]) {
    const { skipped } = await load({ w: W, x: object(name, undefined, [2]) });
    expect(skipped).toEqual([{ name: "x", what: name }]);
  }
});

it("a list that holds itself in an object is printed as Python does", async () => {
  // A list, stored as memo 0, in the state of an object: [...].
  const { tensors } = await load({ w: W, x: object("a.B", { items: new Recursive() }) });
  expect(Object.keys(tensors)).toEqual(["w"]);
});

it("reads a list of 600,000 integers", async () => {
  const steps = Array.from({ length: 600_000 }, (_, i) => i);
  expect((await load({ w: W, steps })).values["steps.599999"]).toBe(599_999);
});

it("reads a list of 600,000 floats, and more where maxObjects allows", async () => {
  const losses = (length: number) => ({ w: W, losses: new Array(length).fill(0.5) });
  expect((await load(losses(600_000))).values["losses.599999"]).toBe(0.5);
  await expectCode("CORRUPT", load(losses(1000), { maxObjects: 500 }));
});
