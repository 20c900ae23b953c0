/** Files that belong together as one: their names, roles, counts and values, and what is rejected of them. */
import { describe, expect, it } from "vitest";
import { expectCode } from "../../testing/expect-code";
import { fileOf, type Numbers } from "../../testing/files/file-of";
import { readFloats } from "../../testing/read-tensor";
import type { Json, TensorSource } from "../format/source";
import { underOurNames } from "./names";

const f32 = (...numbers: number[]) => Float32Array.from(numbers);
const MODEL = { w: f32(1, 2), b: f32(3) };
const STATES = { "w/m": f32(4, 5), "b/m": f32(6) };

describe("two files", () => {
  const model = fileOf("Paddle", MODEL, {
    path: "m",
    values: { epoch: 3, lr: 1 },
    unreadable: new Map([["odd", "why"]]),
  });
  const optimizer = fileOf("TF.js", STATES, { path: "o", step: 7, values: { lr: 2 } });

  it("have the formats, paths, values and the step of both", async () => {
    const { format, path, step, values, unreadable } = await underOurNames([model, optimizer]);
    expect({ format, path, step, values, unreadable: [...unreadable!] }).toEqual({
      format: "Paddle + TF.js",
      path: "m + o",
      step: 7,
      values: { epoch: 3, lr: 2 },
      unreadable: [["odd", "why"]],
    });
  });

  it("of one format are named once, and without a step have none", async () => {
    const joined = await underOurNames([model, fileOf("Paddle", {}, { path: "p" })]);
    expect(joined).toMatchObject({ format: "Paddle", path: "m + p" });
    expect("step" in joined).toBe(false);
  });

  it("say of each tensor what it is", async () => {
    const { tensors } = await underOurNames([model, optimizer]);
    const roles = [...tensors.values()].map(({ name, role, follows }) => [name, role, follows]);
    expect(roles).toEqual([
      ["w", "param", undefined],
      ["b", "param", undefined],
      ["w.exp_avg", "state", "w"],
      ["b.exp_avg", "state", "b"],
    ]);
  });

  it("are closed together", async () => {
    const closed: string[] = [];
    const files = ["a", "b"].map((path) => fileOf("x", {}, { path, close: async () => void closed.push(path) }));
    await (await underOurNames(files)).close();
    expect(closed).toEqual(["a", "b"]);
  });
});

it("one file keeps its path and format, numbers without dimensions are scalars, a role of its own stays", async () => {
  const tensors = { n: { numbers: f32(1), shape: [] }, q: { numbers: f32(2), role: "scalar" as const }, w: f32(3) };
  const named = await underOurNames(fileOf("x", tensors, { unreadable: new Map([["odd", "why"]]) }), {
    map: { w: "v" },
  });
  expect([...named.tensors.values()].map(({ name, role }) => [name, role])).toEqual([
    ["n", "scalar"],
    ["q", "scalar"],
    ["v", "param"],
  ]);
  expect(named).toMatchObject({ path: "a", format: "x" });
  expect([...named.unreadable!]).toEqual([["odd", "why"]]);
});

describe("steps that are counted once for all", () => {
  it.each<[string, Numbers | { numbers: Numbers; shape: number[] }, number | undefined]>([
    ["in 32 bits", Int32Array.of(9), 9],
    ["in 64 bits", { numbers: BigInt64Array.of(10n), shape: [] }, 10],
    ["in one cell of a matrix", { numbers: Int32Array.of(11), shape: [1, 1] }, 11],
    ["as no integer", f32(9), undefined],
    ["as more than one", Int32Array.of(9, 9), undefined],
  ])("%s", async (_, iter, step) => {
    const named = await underOurNames(fileOf("TF.js", { ...MODEL, ...STATES, iter }));
    for (const name of step === undefined ? [] : ["w", "b"])
      expect(await readFloats(named, `${name}.step`)).toEqual([step]);
    const kinds = [...named.tensors.values()].filter(({ name }) => name.endsWith(".step"));
    const expected = ["w", "b"].map((follows) => ({
      name: `${follows}.step`,
      role: "state",
      follows,
      shape: [],
      dtype: "F32",
    }));
    expect(kinds).toMatchObject(step === undefined ? [] : expected);
  });

  it("leave those alone that a parameter has", async () => {
    const own = { "w.step": { numbers: f32(3), shape: [] } };
    const named = await underOurNames(fileOf("TF.js", { ...MODEL, ...STATES, ...own, iter: Int32Array.of(9) }));
    expect(await readFloats(named, "w.step")).toEqual([3]);
    expect(await readFloats(named, "b.step")).toEqual([9]);
  });

  it("are nobody's where there is no state", async () => {
    const { tensors } = await underOurNames(fileOf("TF.js", { ...MODEL, iter: Int32Array.of(9) }));
    expect([...tensors.keys()]).toEqual(["w", "b", "iter"]);
  });
});

describe("what is not proven", () => {
  /** Paddle's optimizer, whose own names of parameters the model beside it does not know. */
  const many = (count: number) => [
    fileOf("Paddle", Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}_moment1_0`, f32(i)]))),
    fileOf("Paddle", {}),
  ];
  const map = (count: number): Record<string, string> =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}_moment1_0`, `q${i}.exp_avg`]));
  const shown = (files: TensorSource[]) => underOurNames(files).catch((error: Error) => error.message);

  it("is shown as the map to write, the first twelve", async () => {
    expect(await shown(many(1))).toContain('this is: { "p0_moment1_0": "<what the model calls p0>.exp_avg" }.');
    expect(await shown(many(12))).toMatch(/"p11_moment1_0": "<what the model calls p11>.exp_avg" }\./);
    expect(await shown(many(14))).toMatch(/"p11_moment1_0": "[^"]*", and 2 more }\./);
  });

  it("is taken where the map names all of it", async () => {
    expect([...(await underOurNames(many(3), { map: map(3) })).tensors.keys()]).toEqual(Object.values(map(3)));
    await expectCode("BAD_STATE", underOurNames(many(3), { map: map(2) }));
  });
});

describe("a map", () => {
  const nested = fileOf("x", { "a.w": f32(1), "a.b.w": f32(2), ab: f32(3), "c/w": f32(4) });
  it.each<[string, Record<string, string>, string[]]>([
    ["renames what its key begins, up to a dot", { a: "z" }, ["z.w", "z.b.w", "ab", "c/w"]],
    ["or slash", { c: "z" }, ["a.w", "a.b.w", "ab", "z/w"]],
    ["takes the longest key, whatever the order", { "a.b": "y", a: "z" }, ["z.w", "y.w", "ab", "c/w"]],
    ["takes beginnings off", { a: "" }, ["w", "b.w", "ab", "c/w"]],
  ])("%s", async (_, names, expected) => {
    expect([...(await underOurNames(nested, { map: names })).tensors.keys()]).toEqual(expected);
  });

  it("of what is not there, or onto a name that is, is rejected", async () => {
    const missing = underOurNames(nested, { map: { nothing: "z" } });
    await expect(missing).rejects.toMatchObject({
      code: "MISSING",
      message: expect.stringContaining("a.w, a.b.w, ab and"),
    });
    await expectCode("DUPLICATE", underOurNames(nested, { map: { ab: "c/w" } }));
  });

  it("reaches what cannot be read, and how names were nested", async () => {
    const structure = { a: { w: "a.w" } } as Json;
    const source = fileOf("x", { "a.w": f32(1) }, {
      structure,
      unreadable: new Map([["a.odd", "why"]]),
    } as Partial<TensorSource>);
    const named = await underOurNames(source, { map: { "a.w": "v" } });
    expect([...named.unreadable!.keys()]).toEqual(["a.odd"]);
    expect(Object.keys(named.values)).toEqual(["torch"]);
    expect("structure" in named).toBe(false);
  });
});

it("no file at all is rejected", async () => {
  await expectCode("BAD_ARGUMENT", underOurNames([]));
});

it("what a file says of a tensor goes before what its name looks like", async () => {
  const tensors = {
    w: f32(1),
    "w.m": { numbers: f32(2), role: "param" as const },
    "w.v": { numbers: f32(3), role: "scalar" as const },
    "w.exp_avg": f32(4),
  };
  const named = await underOurNames(fileOf("safetensors", tensors));
  expect([...named.tensors.values()].map(({ name, role, follows }) => [name, role, follows])).toEqual([
    ["w", "param", undefined],
    ["w.m", "param", undefined],
    ["w.v", "scalar", undefined],
    ["w.exp_avg", "state", "w"],
  ]);
});

it("a state follows its parameter to a new name", async () => {
  const state = { numbers: f32(2), role: "state" as const, follows: "w" };
  const named = await underOurNames(fileOf("safetensors", { w: f32(1), "w.odd": state }), { map: { w: "v" } });
  expect(named.tensors.get("v.odd")).toMatchObject({ role: "state", follows: "v" });
});

/** As the readers of pickles note how names are nested. */
const dict = (...entries: [unknown, unknown][]) => ({ dict: entries });

it.each([[0], [1]])("a counter of all steps leaves parameters theirs, whichever file is first (%i)", async (first) => {
  const counted = fileOf("TF.js", { ...MODEL, ...STATES, iter: Int32Array.of(9) }, { path: "counted" });
  const structure = dict(
    ["state", dict([0, dict(["step", 5], ["exp_avg", { tensor: "state.0.exp_avg" }])])],
    ["param_groups", { list: [dict(["params", { list: [0] }], ["param_names", { list: ["own"] }])] }],
  );
  const own = fileOf("PyTorch", { "state.0.exp_avg": f32(1) }, { path: "own", structure: structure as Json });
  const named = await underOurNames(first === 0 ? [counted, own] : [own, counted]);
  expect(await readFloats(named, "own.step")).toEqual([5]);
  expect(await readFloats(named, "w.step")).toEqual([9]);
});
