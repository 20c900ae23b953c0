import { inspect } from "node:util";
import { Generator, parameter, type Tensor, tensor, zeros } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import {
  BatchNorm1d,
  Conv2d,
  Dropout,
  Embedding,
  LayerNorm,
  Linear,
  MaxPool2d,
  Module,
  ModuleDict,
  ModuleList,
  ReLU,
  Sequential,
} from "../index";

class Block extends Module {
  readonly fc = new Linear(2, 2, { bias: false });
  forward(x: Tensor): Tensor {
    return this.fc.forward(x);
  }
}

class Net extends Module {
  readonly embedding = parameter([[1, 2]]);
  readonly blocks = [new Block(), new Block()];
  readonly position = tensor([3, 4]);
  readonly #mask = tensor([1, 0]);
  readonly width = 2;
  readonly drop = new Dropout(0.5);
  forward(x: Tensor): Tensor {
    return this.blocks.reduce((y, block) => block.forward(y), x.mul(this.#mask));
  }
}

const names = (pairs: Iterable<[string, unknown]>) => [...pairs].map(([name]) => name);

describe("Module", () => {
  it("finds parameters by walking properties, with PyTorch's dotted names", () => {
    expect(names(new Net().namedParameters())).toEqual(["embedding", "blocks.0.fc.weight", "blocks.1.fc.weight"]);
    const model = new Sequential(new Linear(3, 2), new ReLU(), new Linear(2, 1));
    expect(names(model.namedParameters())).toEqual(["0.weight", "0.bias", "2.weight", "2.bias"]);
  });

  it("has frozen weights among the parameters, unless trainable ones are asked for, and buffers in the state", () => {
    const net = new Net();
    net.embedding.requiresGrad = false; // before the module was asked for anything
    expect(Object.keys(net.stateDict())).toEqual(["embedding", "position", "blocks.0.fc.weight", "blocks.1.fc.weight"]);
    expect(names(net.namedParameters())).toEqual(["embedding", "blocks.0.fc.weight", "blocks.1.fc.weight"]);
    expect(names(net.namedParameters({ trainable: true }))).toEqual(["blocks.0.fc.weight", "blocks.1.fc.weight"]);
    expect(net.parameters({ trainable: true }).length).toBe(2);
    expect(names(net.namedBuffers())).toEqual(["position"]);
    expect(net.buffers()).toEqual([net.position]);
    expectCode("BAD_ARGUMENT", () => net.parameters({ trainable: 1 as never }));
    expectCode("BAD_ARGUMENT", () => net.parameters({ trained: true } as never));
  });

  it("has frozen parameters that lie in lists and maps", () => {
    class Lists extends Module {
      readonly list = [parameter([1]), tensor([2])];
      readonly map = new Map([["a", parameter([3])]]);
      forward(): void {}
    }
    const lists = new Lists().freeze();
    expect(names(lists.namedParameters())).toEqual(["list.0", "map.a"]);
    lists.parameters().forEach((each, i) => {
      each.set([7 + i]);
    });
    expect([...lists.list[0]!.dataSync(), ...lists.map.get("a")!.dataSync()]).toEqual([7, 8]);
    expect(lists.to("f64").unfreeze().parameters({ trainable: true }).length).toBe(2);
    expect(names(lists.namedBuffers())).toEqual(["list.1"]);
  });

  it("gives a frozen target network to be overwritten", () => {
    const [online, target] = [new Linear(2, 1), new Linear(2, 1).freeze()];
    const weights = online.parameters();
    target.parameters().forEach((slow, i) => {
      slow.set(weights[i]!);
    });
    expect([...target.weight.dataSync(), ...target.bias!.dataSync()]).toEqual([
      ...online.weight.dataSync(),
      ...online.bias!.dataSync(),
    ]);
  });

  it("yields a shared tensor once, but saves it under both names", () => {
    const layer = new Linear(2, 2, { bias: false });
    const model = new Sequential(layer, layer);
    expect(names(model.namedParameters())).toEqual(["0.weight"]);
    expect(Object.keys(model.stateDict())).toEqual(["0.weight", "1.weight"]);
  });

  it("freezes all parameters and unfreezes what was one, tied, replaced and frozen by hand too; buffers stay buffers", () => {
    class Tied extends Module {
      readonly embedding = new Embedding(3, 2);
      readonly body = new Sequential(new Linear(2, 2), new BatchNorm1d(2));
      readonly head = new Linear(2, 3, { bias: false });
      readonly scale = parameter(1);
      forward(): void {}
    }
    const model = new Tied();
    model.head.weight = model.embedding.weight;
    const all = names(model.namedParameters());
    for (const parameter of model.body.parameters()) parameter.requiresGrad = false;
    const trainable = (module: Module) => names(module.namedParameters({ trainable: true }));
    expect(trainable(model.freeze().to("f64"))).toEqual([]);
    expect(names(model.namedParameters())).toEqual(all);
    expect(trainable(model.head.unfreeze())).toEqual(["weight"]);
    expect(trainable(model.unfreeze())).toEqual(all);
    expect(model.body.namedTensors().filter(([, tensor]) => !tensor.requiresGrad).length).toBe(3);
  });

  it("switches training mode in all children", () => {
    const net = new Net().eval();
    expect([net.training, net.drop.training, net.blocks[1]!.fc.training]).toEqual([false, false, false]);
    expect(net.train().drop.training).toBe(true);
  });
});

describe("Module finds children and tensors", () => {
  class Holder extends Module {
    constructor(readonly held: unknown) {
      super();
    }
    forward(): void {}
  }
  const layer = () => new Linear(1, 1, { bias: false });

  it.each<[string, () => unknown, string[]]>([
    [
      "in arrays of arrays",
      () => [[layer()], [layer(), layer()]],
      ["held.0.0.weight", "held.1.0.weight", "held.1.1.weight"],
    ],
    [
      "in maps",
      () =>
        new Map<unknown, Module>([
          ["a", layer()],
          [7, layer()],
        ]),
      ["held.a.weight", "held.7.weight"],
    ],
    ["in sets", () => new Set([layer(), layer()]), ["held.0.weight", "held.1.weight"]],
    ["in plain objects", () => ({ a: { b: layer() }, c: parameter(1) }), ["held.c", "held.a.b.weight"]],
    ["in modules among them", () => [{ deep: new Holder(new Map([["x", layer()]])) }], ["held.0.deep.held.x.weight"]],
  ])("%s", (_, held, expected) => {
    const holder = new Holder(held());
    expect(names(holder.namedParameters())).toEqual(expected);
    expect(Object.keys(holder.stateDict())).toEqual(expected);
    holder.eval();
    for (const [, child] of holder.namedChildren()) expect(child.training).toBe(false);
  });

  it("again at every use: lists, not streams", () => {
    const parameters = new Holder([layer()]).parameters();
    expect([[...parameters].length, [...parameters].length]).toEqual([1, 1]);
  });

  it("and rejects circles and names that mean two tensors", () => {
    const parent = new Holder([]);
    Object.assign(parent, { held: new Holder(parent) });
    const list: unknown[] = [];
    list.push(list);
    for (const body of [() => parent.parameters(), () => parent.eval(), () => new Holder(list).stateDict()])
      expectCode("BAD_ARGUMENT", body);
    expect(String(parent)).toBe("Holder(\n  (held): Holder(\n    (held): Holder(...)\n  )\n)");
    expectCode("DUPLICATE", () => new Holder({ "a.b": parameter(1), a: { b: parameter(1) } }).parameters());
  });
});

describe("a property with a parameter", () => {
  const rows: [string, () => unknown][] = [
    ["a buffer", () => zeros([2, 2])],
    ["an array", () => [[1, 2]]],
    ["nothing", () => undefined],
  ];
  it.each(rows)("rejects %s and keeps what it has", (_, value) => {
    const holders: Module[] = [new Linear(2, 2), new Embedding(2, 2), new LayerNorm(2), new Conv2d(2, 2, 1), new Net()];
    for (const module of holders) {
      const before = module.parameters();
      const name = "weight" in module ? "weight" : "embedding";
      expectCode("BAD_ARGUMENT", () => Object.assign(module, { [name]: value() }));
      expect(module.parameters()).toEqual(before);
    }
    expect(() => Object.assign(new Linear(2, 2), { bias: value() })).toThrow(
      /Linear.bias.*or null.*bias.set\(values\)/,
    );
  });

  it("takes another parameter, a shared one, frozen ones, and null where there may be none", () => {
    const [head, embedding] = [new Linear(2, 3), new Embedding(3, 2)];
    Object.assign(head, { weight: embedding.weight, bias: null });
    const model = new Sequential(embedding, head);
    expect(names(model.namedParameters())).toEqual(["0.weight"]);
    expect(Object.keys(model.stateDict())).toEqual(["0.weight", "1.weight"]);
    embedding.weight.requiresGrad = false;
    Object.assign(new Linear(2, 3), { weight: embedding.weight });
    Object.assign(new Linear(2, 3), { weight: Object.assign(parameter([[1, 2]]), { requiresGrad: false }) });
    const own = Object.assign(head, { weight: parameter([[1, 2]]) });
    expect(own.parameters()).toEqual([own.weight]);
    expectCode("BAD_ARGUMENT", () => Object.assign(head, { weight: null }));
  });

  it("may be defined again by a subclass, and be frozen with its object", () => {
    class Own extends Linear {
      override readonly weight = parameter([[1]]);
    }
    expect(names(new Own(2, 2).namedParameters())).toContain("weight");
    expect(Object.freeze(new Net()).parameters().length).toBe(3);
  });
});

it("a class without forward is rejected when it is called, alone and among layers", () => {
  // biome-ignore lint/suspicious/noExplicitAny: what a program without types may write
  class Unfinished extends (Module as any) {}
  const module = new Unfinished() as Linear;
  expectCode("UNSUPPORTED", () => module.forward(zeros([1])));
  expectCode("UNSUPPORTED", () => new Sequential(new ReLU(), module).forward(zeros([1])));
});

it("a model prints its layers", () => {
  class Classifier extends Module {
    readonly features = new Sequential(new Conv2d(1, 8, [3, 2], { stride: 2 }), new MaxPool2d(2), new Dropout(0.1));
    readonly heads = { price: new Linear(8, 1), kind: new Embedding(4, 2) };
    forward(): void {}
  }
  expect(inspect(new Classifier())).toBe(`Classifier(
  (features): Sequential(
    (0): Conv2d(1, 8, kernelSize=3x2, stride=2, bias=true)
    (1): MaxPool2d(kernelSize=2)
    (2): Dropout(p=0.1)
  )
  (heads.price): Linear(inFeatures=8, outFeatures=1, bias=true)
  (heads.kind): Embedding(4, 2)
)`);
  expect(String(new LayerNorm([2, 3]))).toBe("LayerNorm([2, 3], eps=0.00001, bias=true)");
  const plain = new LayerNorm(4, { elementwiseAffine: false });
  expect(String(plain)).toBe("LayerNorm([4], eps=0.00001, bias=false, elementwiseAffine=false)");
  expect(`${new ReLU()}`).toBe("ReLU()");
});

describe("state", () => {
  const made = (seed: number) => new Linear(3, 2, { generator: new Generator(seed) });

  it("goes round", async () => {
    const [from, to] = [made(1), made(2)];
    to.loadStateDict(from.stateDict());
    expect(await to.weight.data()).toEqual(await from.weight.data());
    from.weight.set(new Float32Array(6)); // the copy does not follow
    expect(await to.bias!.data()).toEqual(await from.bias!.data());
    expect(await to.weight.data()).not.toEqual(await from.weight.data());
    expect(to.weight.requiresGrad).toBe(true);
  });

  it("is of views without a tape", async () => {
    const layer = made(1);
    const { weight } = layer.stateDict();
    layer.weight.set(new Float32Array(6).fill(7));
    expect([...(await weight!.data())]).toEqual([7, 7, 7, 7, 7, 7]);
    expect(weight!.requiresGrad).toBe(false);
  });

  it("is converted to the module's dtype", async () => {
    const layer = new Linear(1, 1);
    layer.loadStateDict({ weight: tensor([[1 / 3]], { dtype: "f64" }), bias: tensor([2], { dtype: "i32" }) });
    expect([...(await layer.weight.data()), ...(await layer.bias!.data())]).toEqual([Math.fround(1 / 3), 2]);
  });

  const weight = () => zeros([2, 3]);
  const disposed = () => {
    const tensor = weight();
    tensor.dispose();
    return tensor;
  };
  const rows: [string, Record<string, Tensor>, RegExp][] = [
    ["a missing name", { weight: weight() }, /bias is missing/],
    ["an unexpected name", { weight: weight(), bias: zeros([2]), scale: zeros([2]) }, /scale is unexpected/],
    ["another shape", { weight: zeros([3, 2]), bias: zeros([2]) }, /weight has shape \[3,2\] instead of \[2,3\]/],
    ["another rank", { weight: weight(), bias: zeros([]) }, /bias has shape \[\] instead of \[2\]/],
    ["what is no tensor", { weight: weight(), bias: [0, 0] as unknown as Tensor }, /bias is not a tensor/],
    ["what was disposed", { weight: disposed(), bias: zeros([2]) }, /weight was disposed/],
    ["several at once", { weight: zeros([1]), gain: zeros([1]) }, /bias is missing; gain is unexpected; weight .*/],
  ];
  it.each(rows)("rejects %s and changes nothing", async (_, state, words) => {
    const layer = made(1);
    const before = await layer.weight.data();
    expectCode("BAD_STATE", () => layer.loadStateDict(state));
    const logged = JSON.parse(JSON.stringify(layer.stateDict()));
    expect(() => layer.loadStateDict(logged)).toThrow("written by JSON.stringify, which keeps no numbers");
    expect(() => layer.loadStateDict(state)).toThrow(words);
    expect(await layer.weight.data()).toEqual(before);
  });

  it.each<[unknown, RegExp]>([
    [undefined, /tensors by name/],
    [null, /tensors by name/],
    ["state", /tensors by name/],
    [5, /tensors by name/],
    [new Map(), /tensors by name/],
    [[zeros([2, 3])], /tensors by name/],
    [zeros([2, 3]), /tensors by name/],
    [Promise.resolve({}), /Await it/],
    [{ step: 3, tensors: { weight: zeros([2, 3]) } }, /Pass its \.tensors/],
  ])("rejects %s in the place of a state, strict or not", (state, words) => {
    for (const strict of [true, false]) {
      expectCode("BAD_STATE", () => made(1).loadStateDict(state as never, { strict }));
      expect(() => made(1).loadStateDict(state as never, { strict })).toThrow(words);
    }
  });

  it("takes undefined for a name that the state lacks", async () => {
    const [layer, { weight, bias }] = [made(1), made(2).stateDict()];
    const before = await layer.bias!.data();
    const state = { weight, bias: undefined };
    expectCode("BAD_STATE", () => layer.loadStateDict(state));
    expect(() => layer.loadStateDict(state)).toThrow("bias is missing");
    expect(layer.loadStateDict({ ...state, other: undefined }, { strict: false })).toEqual({
      missing: ["bias"],
      unexpected: [],
    });
    expect([await layer.weight.data(), await layer.bias!.data()]).toEqual([await weight!.data(), before]);
    expect(layer.loadStateDict({ weight, bias, other: undefined })).toEqual({ missing: [], unexpected: [] });
  });

  it("leaves nothing behind", () => {
    const layer = made(1);
    const state = made(2).stateDict();
    const before = layer.weight.device.memory();
    layer.loadStateDict(state);
    expect(layer.weight.device.memory()).toEqual(before);
  });

  it("may be partial when asked", async () => {
    const layer = made(1);
    const told = layer.loadStateDict({ bias: tensor([1, 2]), scale: zeros([1]) }, { strict: false });
    expect(told).toEqual({ missing: ["weight"], unexpected: ["scale"] });
    expect([...(await layer.bias!.data())]).toEqual([1, 2]);
    expectCode("BAD_STATE", () => layer.loadStateDict({ bias: zeros([3]) }, { strict: false }));
  });
});

describe("to", () => {
  it("casts floats in place of themselves, tied ones once, and leaves integers", () => {
    class Tied extends Module {
      readonly table = new Embedding(3, 2);
      readonly heads = { out: this.table.weight, list: [parameter([1, 2])] };
      readonly counts = tensor([1, 2], { dtype: "i32" });
      forward(): void {}
    }
    const model = new Tied();
    const before = model.table.weight;
    expect(model.to("bf16")).toBe(model);
    expect(model.table.weight).toBe(model.heads.out);
    expect([model.table.weight.dtype, model.heads.list[0]!.dtype, model.counts.dtype]).toEqual(["bf16", "bf16", "i32"]);
    expect([model.table.weight.requiresGrad, before.dtype, model.parameters().length]).toEqual([true, "f32", 2]);
    expect(model.to("bf16").table.weight).toBe(model.heads.out);
  });

  it("takes a device or a dtype, not both at once", () => {
    const model = new Linear(2, 2);
    expectCode("BAD_ARGUMENT", () => model.to("js", ...(["f64"] as never[])));
    expect(model.to("js").to("f64").weight.dtype).toBe("f64");
  });

  it("reaches layers of Sequential, lists and dictionaries, and keeps what is frozen so", () => {
    const layer = new Linear(2, 2);
    layer.weight.requiresGrad = false;
    const model = new Sequential(new ModuleList([layer]) as never, new ModuleDict({ a: new Linear(2, 1) }) as never);
    model.to("f64");
    expect(model.namedTensors().map(([name, { dtype }]) => `${name} ${dtype}`)).toEqual([
      "0.0.weight f64",
      "0.0.bias f64",
      "1.a.weight f64",
      "1.a.bias f64",
    ]);
    expect(layer.weight.requiresGrad).toBe(false);
  });

  it("moves to a device, and rejects an unknown one", () => {
    const model = new Linear(2, 1);
    expect(model.to(model.weight.device).weight.device.name).toBe("js");
    expectCode("UNKNOWN_DEVICE", () => model.to("nowhere"));
  });
});

it("apply reaches children before their holder", () => {
  const seen: string[] = [];
  const model = new Sequential(new Linear(1, 1), new ModuleList([new ReLU()]) as never);
  expect(model.apply((module) => void seen.push(module.constructor.name))).toBe(model);
  expect(seen).toEqual(["Linear", "ReLU", "ModuleList", "Sequential"]);
});

describe("ModuleList and ModuleDict", () => {
  it("hold modules that are found by name", () => {
    const list = new ModuleList([new Linear(1, 1, { bias: false })]).push(new Linear(1, 1, { bias: false }));
    const dict = new ModuleDict({ head: new Linear(1, 1, { bias: false }) });
    expect(names(list.namedParameters())).toEqual(["0.weight", "1.weight"]);
    expect([list.length, list.at(-1), [...list].length]).toEqual([2, [...list][1], 2]);
    expect(names(dict.namedParameters())).toEqual(["head.weight"]);
    expect([dict.has("head"), [...dict.keys()], dict.get("head").forward(zeros([1, 1])).shape]).toEqual([
      true,
      ["head"],
      [1, 1],
    ]);
  });

  it("reject what is no module, unknown names and being called", () => {
    expectCode("BAD_ARGUMENT", () => new ModuleList([5 as never]));
    expectCode("BAD_ARGUMENT", () => new ModuleDict({ a: zeros([1]) as never }));
    expectCode("BAD_ARGUMENT", () => new ModuleDict().get("a"));
    expectCode("UNSUPPORTED", () => new ModuleList().forward());
    expectCode("UNSUPPORTED", () => new ModuleDict().forward());
  });
});
