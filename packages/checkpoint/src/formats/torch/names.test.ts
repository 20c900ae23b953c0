import { afterEach, describe, expect, it } from "vitest";
import { memoryFiles } from "../../../testing/disks/memory-files";
import { expectCode } from "../../../testing/expect-code";
import { floats, safetensorsFile, torchTensorCall, torchZip } from "../../../testing/files/made-files";
import { Tuple } from "../../../testing/files/pickles";
import { EXPECTED, torchFile } from "../../../testing/files/torch-files";
import { readFloats } from "../../../testing/read-tensor";
import type { Json, TensorSource } from "../../format/source";
import { underOurNames } from "../../naming/names";
import { localFileSystem } from "../../platform/local";
import { withoutTensors } from "../../read/select";
import { openForeign } from "../registry";

/** Two weights of one shape and a bias; storage n holds n only. */
const STORAGES = Object.fromEntries([0, 1, 2, 3, 4, 5].map((n) => [n, floats(n, n, n, n)]));
const tensor = (storage: number, shape: number[]) => torchTensorCall(String(storage), shape);
const MODEL = { a: tensor(0, [2, 2]), b: tensor(1, [2, 2]), c: tensor(2, [4]) };

/** Parameter number i has the momentum in storage `storages[i]`; groups list numbers. */
function optimizer(states: readonly [storage: number, shape: number[]][], groups: number[][], more: object = {}) {
  const state = new Map(states.map(([storage, shape], i) => [i, { momentum_buffer: tensor(storage, shape) }]));
  return { state, param_groups: groups.map((params) => ({ lr: 0.5, betas: new Tuple(0.9, 0.99), params, ...more })) };
}
const IN_ORDER: [number, number[]][] = [
  [3, [2, 2]],
  [4, [2, 2]],
  [5, [4]],
];

const COPY = { a: tensor(3, [2, 2]), b: tensor(4, [2, 2]), c: tensor(5, [4]) };
const prefixed = (prefix: string, tensors: object) =>
  Object.fromEntries(Object.entries(tensors).map(([name, value]) => [prefix + name, value]));

const open = (object: unknown, name = "a.pt", files: Record<string, Uint8Array> = {}): Promise<TensorSource> =>
  openForeign(`/root/${name}`, memoryFiles({ [name]: torchZip(object, STORAGES), ...files }));

describe("the parameters of a PyTorch optimizer", () => {
  it.each([
    ["in one group, which may be in any order", [[0, 1, 2]]],
    ["in two groups", [[1], [0, 2]]],
  ])("are not told by equal shapes %s", async (_, groups) => {
    const source = await open({ model: MODEL, optimizer: optimizer(IN_ORDER, groups) });
    const message = await expectCode("BAD_STATE", underOurNames(source));
    for (const entry of ['"optimizer.state.0": "a | b"', '"optimizer.state.1": "a | b"', '"optimizer.state.2": "c"']) {
      expect(message).toContain(entry);
    }
  });

  it("are described by their shapes where there is no model", async () => {
    const source = await open({
      optimizer: optimizer(
        [
          [3, [2, 2]],
          [5, [4]],
        ],
        [[0, 1]],
      ),
    });
    const message = await expectCode("BAD_STATE", underOurNames(source));
    const described = { "optimizer.state.0": "a parameter of [2, 2]", "optimizer.state.1": "a parameter of [4]" };
    for (const [key, meaning] of Object.entries(described)) expect(message).toContain(`"${key}": "${meaning}"`);
  });

  it("are told by shapes that only one has, in whatever order", async () => {
    const states: [number, number[]][] = [
      [5, [4]],
      [3, [2, 2]],
    ];
    const { a, c } = MODEL;
    const source = await underOurNames(await open({ model: { a, c }, optimizer: optimizer(states, [[0], [1]]) }));
    expect(await readFloats(source, "a.momentum_buffer")).toEqual([3, 3, 3, 3]);
    expect(await readFloats(source, "c.momentum_buffer")).toEqual([5, 5, 5, 5]);
  });

  it("are told by the model's order where the user vouches for it, and equal shapes stand in one group", async () => {
    const vouched = { parameterOrder: "model" } as const;
    const source = await underOurNames(
      await open({ model: MODEL, optimizer: optimizer(IN_ORDER, [[0, 1], [2]]) }),
      vouched,
    );
    expect(await readFloats(source, "b.momentum_buffer")).toEqual([4, 4, 4, 4]);
    const apart = await open({ model: MODEL, optimizer: optimizer(IN_ORDER, [[0, 2], [1]]) });
    await expectCode("BAD_STATE", underOurNames(apart, vouched));
  });

  describe("without state, as frozen ones,", () => {
    const groupsIn = (source: TensorSource) =>
      (source.values.optimizer as { groups: { params: string[] }[] }).groups.map(({ params }) => params);
    /** The states of these numbers alone. */
    const some = (numbers: number[], groups: number[][]) => {
      const all = optimizer(IN_ORDER, groups);
      return { ...all, state: new Map([...all.state].filter(([number]) => numbers.includes(number))) };
    };
    const vouched = { parameterOrder: "model" } as const;

    it.each<[string, number[], number[][], object, string[][]]>([
      ["are what is left of the model", [2], [[0, 1, 2]], {}, [["a", "b", "c"]]],
      ["are told by the model's order", [1, 2], [[0, 1, 2]], vouched, [["a", "b", "c"]]],
      ["are told by the model's order in two groups", [1, 2], [[0, 1], [2]], vouched, [["a", "b"], ["c"]]],
      [
        "are told by a map",
        [1, 2],
        [[0, 1, 2]],
        { map: { "optimizer.state.0": "b", "optimizer.state.1": "a" } },
        [["b", "a", "c"]],
      ],
      [
        "are told by a map of the others",
        [1, 2],
        [[0, 1, 2]],
        { map: { "optimizer.state.1": "b" } },
        [["a", "b", "c"]],
      ],
    ])("%s", async (_, numbers, groups, naming, expected) => {
      const source = await underOurNames(await open({ model: MODEL, optimizer: some(numbers, groups) }), naming);
      expect(groupsIn(source)).toEqual(expected);
      const stepped = expected.flat().filter((_, number) => numbers.includes(number));
      for (const [i, name] of stepped.entries())
        expect(await readFloats(source, `${name}.momentum_buffer`)).toEqual(new Array(4).fill(numbers[i]! + 3));
    });

    it("are told where the optimizer lacks some of the model's, if the order leaves one answer", async () => {
      const { a, b, c } = MODEL;
      const model = { a, e: tensor(5, [4]), b, c };
      const source = await open({
        model,
        optimizer: optimizer(
          [
            [3, [4]],
            [4, [2, 2]],
            [5, [4]],
          ],
          [[0, 1, 2]],
        ),
      });
      expect(groupsIn(await underOurNames(source, vouched))).toEqual([["e", "b", "c"]]);
    });

    it("are asked for where they may be in either group", async () => {
      const source = await open({ model: MODEL, optimizer: some([2], [[0], [1, 2]]) });
      const message = await expectCode("BAD_STATE", underOurNames(source));
      expect(message).toContain('"optimizer.state.0": "a | b"');
      const map = { "optimizer.state.0": "b", "optimizer.state.1": "a" };
      expect(groupsIn(await underOurNames(source, { map }))).toEqual([["b"], ["a", "c"]]);
      await expectCode("MISSING", underOurNames(source, { map: { "optimizer.state.7": "a" } }));
    });
  });

  it("are told in the model's order under the first name of tied weights, which share a storage", async () => {
    const { a, b, c } = MODEL;
    const tied = { a, b, d: tensor(0, [2, 2]), c };
    const source = await open({ model: tied, optimizer: optimizer(IN_ORDER, [[0, 1, 2]]) });
    const named = await underOurNames(source, { parameterOrder: "model" });
    expect([...named.tensors.keys()].slice(0, 4)).toEqual(["a", "b", "d", "c"]);
    expect(await readFloats(named, "b.momentum_buffer")).toEqual([4, 4, 4, 4]);
    expect(named.values.optimizer).toMatchObject({ groups: [{ params: ["a", "b", "c"] }] });
    const untied = { ...tied, d: tensor(5, [2, 2]) };
    const other = await open({ model: untied, optimizer: optimizer(IN_ORDER, [[0, 1, 2]]) });
    const message = await expectCode("BAD_STATE", underOurNames(other, { parameterOrder: "model" }));
    expect(message).not.toContain("parameterOrder");
  });

  it.each([
    ["inside of the model", { model: { ...MODEL, ...prefixed("ema.", COPY) } }, "model.ema.*"],
    ["beside it", { model: MODEL, ema: prefixed("module.", COPY) }, "ema.*"],
  ])("are told without a copy of the model %s, which the message names", async (_, models, pattern) => {
    const source = await open({ ...models, optimizer: optimizer(IN_ORDER, [[0, 1, 2]]) });
    const vouched = { parameterOrder: "model" } as const;
    const message = await expectCode("BAD_STATE", underOurNames(source, vouched));
    expect(message).toContain(`(exclude: ["${pattern}"])`);
    const named = await underOurNames(withoutTensors(source, [pattern], new Set()), vouched);
    expect(await readFloats(named, "b.momentum_buffer")).toEqual([4, 4, 4, 4]);
  });

  it("are told by the map, the rest of them by what is left", async () => {
    const source = await open({ model: MODEL, optimizer: optimizer(IN_ORDER, [[0, 1, 2]]) });
    const named = await underOurNames(source, { map: { "optimizer.state.0": "b" } });
    expect(await readFloats(named, "b.momentum_buffer")).toEqual([3, 3, 3, 3]);
    expect(await readFloats(named, "a.momentum_buffer")).toEqual([4, 4, 4, 4]);
  });

  it("are not told by a model's order that other shapes disprove", async () => {
    // The bias first, which the model lists last.
    const numbered = optimizer([IN_ORDER[2]!, IN_ORDER[0]!, IN_ORDER[1]!], [[0, 1, 2]]);
    const source = await open({ model: MODEL, optimizer: numbered });
    const message = await expectCode("BAD_STATE", underOurNames(source, { parameterOrder: "model" }));
    expect(message).toMatch(/state\.0 is c and optimizer\.state\.1 is a/);
  });

  it("may be mapped where no model is there to compare with", async () => {
    const source = await open(optimizer([IN_ORDER[0]!], [[0]]), "optimizer.pt");
    const named = await underOurNames(source, { map: { "state.0": "d" } });
    expect(await readFloats(named, "d.momentum_buffer")).toEqual([3, 3, 3, 3]);
  });

  it("are told by their names, which come along with the options of their groups", async () => {
    const named = optimizer(IN_ORDER, [[0, 1, 2]], { param_names: ["b", "a", "c"], weight_decay: 0.25, foreach: null });
    const source = await underOurNames(await open({ model: MODEL, optimizer: named, epoch: 3 }));
    expect(await readFloats(source, "b.momentum_buffer")).toEqual([3, 3, 3, 3]);
    expect(source.tensors.get("b.momentum_buffer")).toMatchObject({ role: "state", follows: "b" });
    const { optimizer: saved, epoch } = source.values as Record<string, Json>;
    expect(epoch).toBe(3);
    const group = { params: ["b", "a", "c"], lr: 0.5, betas: [0.9, 0.99], weightDecay: 0.25 };
    expect(saved).toEqual({ groups: [group], counters: {} });
    expect(Object.keys(source.values).filter((key) => key.includes("param_groups"))).toEqual([]);
  });

  it.each(["a.pt", "model.safetensors"])("are told by a model in another file (%s)", async (name) => {
    const named = optimizer(IN_ORDER, [[0, 1, 2]], { param_names: ["b", "a", "c"] });
    const files = {
      "a.pt": torchZip(MODEL, STORAGES),
      "model.safetensors": safetensorsFile(
        ["a", "b", "c"].map((key, i) => ({ name: key, shape: i < 2 ? [2, 2] : [4], data: STORAGES[i]! })),
      ),
    };
    const [model, state] = [await open(null, name, files), await open(named, "optimizer.pt")];
    const source = await underOurNames([model, state]);
    expect([...source.tensors.keys()]).toEqual([
      "a",
      "b",
      "c",
      ...["b", "a", "c"].map((key) => `${key}.momentum_buffer`),
    ]);
    // A safetensors file is sorted, so its order says nothing.
    const numbered = await open(optimizer(IN_ORDER, [[0, 1, 2]]), "optimizer.pt");
    const vouched = underOurNames([model, numbered], { parameterOrder: "model" });
    if (name === "a.pt") expect(await readFloats(await vouched, "a.momentum_buffer")).toEqual([3, 3, 3, 3]);
    else await expectCode("BAD_STATE", vouched);
  });

  it("are those of the model, not of its average; other models of the same parameters are rejected", async () => {
    const named = optimizer(IN_ORDER, [[0, 1, 2]], { param_names: ["b", "a", "c"] });
    const source = await underOurNames(await open({ model: MODEL, ema: MODEL, optimizer: named }));
    expect([...source.tensors.keys()].slice(0, 4)).toEqual(["a", "b", "c", "ema.a"]);
    await expectCode("BAD_STATE", underOurNames(await open({ one: MODEL, two: MODEL, optimizer: named })));
  });

  it.each([
    ["by name", { param_names: ["b", "a", "c"] }, ["b", "a", "c"]],
    ["by position", {}, ["0", "1", "2"]],
  ])("are not needed where there is no state: options come along, %s", async (_, more, params) => {
    const stateless = optimizer([], [[0, 1, 2]], more);
    const source = await underOurNames(await open({ model: MODEL, ema: MODEL, optimizer: stateless }));
    expect([...source.tensors.keys()]).toEqual(["a", "b", "c", "ema.a", "ema.b", "ema.c"]);
    expect(source.values.optimizer).toEqual({ groups: [{ params, lr: 0.5, betas: [0.9, 0.99] }], counters: {} });
  });

  it("of two optimizers keep the words of their models", async () => {
    const [one, two] = [["a"], ["c"]].map(([name], i) => optimizer([IN_ORDER[i * 2]!], [[0]], { param_names: [name] }));
    const object = { net_g: { a: MODEL.a }, net_d: { c: MODEL.c }, opt_g: one, opt_d: two };
    const source = await underOurNames(await open(object));
    expect([...source.tensors.keys()]).toEqual([
      "net_g.a",
      "net_d.c",
      "net_g.a.momentum_buffer",
      "net_d.c.momentum_buffer",
    ]);
    expect(source.values).toMatchObject({ opt_g: { groups: [{ params: ["net_g.a"] }] }, opt_d: { groups: [{}] } });
  });
});

describe("what torch wrote", () => {
  const sources: TensorSource[] = [];
  const opened = async (name: string, naming = {}): Promise<TensorSource> => {
    const source = await openForeign(torchFile(name), localFileSystem);
    sources.push(source);
    return underOurNames(source, naming);
  };
  afterEach(async () => {
    for (const source of sources.splice(0)) await source.close();
  });

  it("by Lightning: parameters by their names, the step, the options", async () => {
    const source = await opened("lightning.pt");
    for (const [name, values] of Object.entries(EXPECTED["lightning.pt"]!)) {
      expect([name, await readFloats(source, name)]).toEqual([name, values]);
    }
    expect(source.step).toBe(2);
    expect(source.tensors.has("1.running_mean")).toBe(true);
    expect(source.values.optimizer).toMatchObject({ groups: [{ lr: 0.5, amsgrad: true, betas: [0.9, 0.999] }] });
  });

  it("with groups in another order than the model's: rejected, and right by the map", async () => {
    expect(await expectCode("BAD_STATE", opened("swapped.pt"))).toContain('"optimizer.state.0": "0.weight | 2.weight"');
    const order = ["2.weight", "0.weight", "2.bias", "1.bias", "1.weight", "0.bias"];
    const map = Object.fromEntries(order.map((name, i) => [`optimizer.state.${i}`, name]));
    const source = await opened("swapped.pt", { map });
    for (const [name, values] of Object.entries(EXPECTED["swapped.pt"]!)) {
      expect([name, await readFloats(source, name)]).toEqual([name, values]);
    }
  });

  it.each(["nested", "flat"])("by FSDP2 through DCP, %s", async (name) => {
    const source = await opened(name);
    const parameters = [0, 1, 2].flatMap((layer) => [`${layer}.weight`, `${layer}.bias`]);
    for (const parameter of parameters) {
      expect(await readFloats(source, `${parameter}.step`)).toEqual([3]);
      expect(source.tensors.get(`${parameter}.exp_avg`)).toMatchObject({ role: "state", follows: parameter });
    }
    expect(source.tensors.size).toBe(6 * 4);
    const { groups } = source.values.optimizer as { groups: { params: string[] }[] };
    const sorted = groups.map((group) => ({ ...group, params: [...group.params].sort() }));
    expect(sorted).toEqual([
      expect.objectContaining({ params: ["0.bias", "1.bias", "2.bias"], lr: 0.25, weightDecay: 0 }),
      expect.objectContaining({ params: ["0.weight", "1.weight", "2.weight"], weightDecay: 0.01 }),
    ]);
    expect(source.values.epoch).toBe(3);
  });
});
