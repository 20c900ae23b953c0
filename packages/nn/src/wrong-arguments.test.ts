// Every layer, loss and initialiser is called with arguments of the wrong kind: what comes out is an OptError, never a raw TypeError.
import { manualSeed, Tensor, zeros } from "@opt/core";
import { expectCode, rankErrors, rawErrors, storedCodes, withUndefined } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FUNCTIONS, LAYERS } from "../testing/valid-arguments";
import * as nn from "./index";

/** Programs branch on codes: each wrong argument keeps its own. */
const expectStored = storedCodes(new URL("../testing/goldens/error-codes.json", import.meta.url));

// biome-ignore lint/suspicious/noExplicitAny: any arguments are the point
type Any = any;
const exported = Object.entries(nn as Readonly<Record<string, Any>>).filter(
  ([name]) => !["BatchNorm", "Module", "ModuleList", "ModuleDict"].includes(name),
);

describe("layers", () => {
  it.each(exported.filter(([name]) => /^[A-Z]/.test(name)))("%s", async (name, Layer) => {
    expect(LAYERS, `valid arguments of ${name}`).toHaveProperty(name);
    const [made, given] = LAYERS[name]!;
    // The default Transformer has 44 million weights: making it is right, and slow.
    const isLarge = (args: readonly Any[]) => name === "Transformer" && args[0] === undefined;
    const make = (...args: Any[]) => (isLarge(args) ? undefined : new Layer(...args));
    const codes: string[] = [];
    expect(await rawErrors(`new ${name}`, make, made, codes, true)).toEqual([]);
    const layer = new Layer(...made());
    layer.forward(...given());
    expect(await rawErrors(`${name}.forward`, (...args: Any[]) => layer.forward(...args), given, codes, true)).toEqual(
      [],
    );
    expectStored(name, codes);
  });

  it("ModuleList and ModuleDict", async () => {
    const made = { list: () => [[new nn.ReLU()]], dict: () => [{ a: new nn.ReLU() }] };
    expect(await rawErrors("ModuleList", (...args: Any[]) => new (nn.ModuleList as Any)(...args), made.list)).toEqual(
      [],
    );
    expect(await rawErrors("ModuleDict", (...args: Any[]) => new (nn.ModuleDict as Any)(...args), made.dict)).toEqual(
      [],
    );
    const set = (...args: Any[]) => (new nn.ModuleDict().set as Any).apply(new nn.ModuleDict(), args);
    expect(await rawErrors("ModuleDict.set", set, () => ["a", new nn.ReLU()])).toEqual([]);
  });

  it.each(["train", "loadStateDict", "to", "apply", "onForward"] as const)("%s", async (method) => {
    const valid = {
      train: () => [true],
      loadStateDict: () => [new nn.Linear(3, 2).stateDict(), { strict: true }],
      to: () => ["f64"],
      apply: () => [() => 1],
      onForward: () => [() => 1],
    }[method];
    const call = (...args: Any[]) => (new nn.Linear(3, 2)[method] as Any).call(new nn.Linear(3, 2), ...args);
    const codes: string[] = [];
    expect(await rawErrors(method, call, valid, codes)).toEqual([]);
    expectStored(`Module.${method}`, codes);
  });
});

describe("in the place of a parameter", () => {
  it.each(Object.entries(LAYERS))("%s takes no value, and null only where it works without", (name, [made, given]) => {
    const layer = new (nn as Any)[name](...made()).eval();
    const results = () => [layer.forward(...given())].flat(2).map((result) => result?.tolist());
    for (const [own, parameter] of Object.entries(layer)) {
      if (!(parameter instanceof Tensor && parameter.requiresGrad)) continue;
      for (const value of [zeros(parameter.shape), [1], undefined]) {
        expectCode("BAD_ARGUMENT", () => Object.assign(layer, { [own]: value }));
        expect(layer[own]).toBe(parameter);
      }
      try {
        layer[own] = null;
      } catch (error) {
        expect(error).toMatchObject({ code: "BAD_ARGUMENT" });
        continue;
      }
      const without = results();
      layer[own] = parameter;
      if (own.includes("bias")) {
        parameter.set(zeros(parameter.shape));
        expect(results()).toEqual(without);
      }
    }
  });
});

describe("functions", () => {
  it.each(exported.filter(([name]) => !/^[A-Z]/.test(name)))("%s", async (name, call) => {
    expect(FUNCTIONS, `valid arguments of ${name}`).toHaveProperty(name);
    await call(...FUNCTIONS[name]!());
    const codes: string[] = [];
    expect(await rawErrors(name, call, FUNCTIONS[name]!, codes, true)).toEqual([]);
    expectStored(name, codes);
  });
});

describe("options of undefined are as those that are left out", () => {
  it.each(Object.entries(LAYERS))("%s", (name, [made, given]) => {
    const make = (...args: never[]) => {
      manualSeed(1);
      const layer = new (nn as Any)[name](...args);
      return [Object.values(layer.stateDict()), layer.forward(...given())];
    };
    const [all, left] = withUndefined(make, made) ?? [];
    expect(all).toBe(left);
    const layer = new (nn as Any)[name](...made()).eval();
    const [called, without] = withUndefined((...args: never[]) => layer.forward(...args), given) ?? [];
    expect(called).toBe(without);
  });

  it.each(Object.entries(FUNCTIONS))("%s", (name, valid) => {
    const call = (...args: never[]) => {
      manualSeed(1);
      return (nn as Any)[name](...args);
    };
    const [given, left] = withUndefined(call, valid) ?? [];
    expect(given).toBe(left);
  });
});

describe("tensors of other ranks and extents", () => {
  it.each(Object.entries(LAYERS))("%s", (name, [made, given]) => {
    const layer = new (nn as Any)[name](...made());
    const codes: string[] = [];
    expect(rankErrors((...args: Any[]) => layer.forward(...args), given, { codes })).toEqual([]);
    expectStored(`ranks of ${name}`, codes);
  });

  // updateBatchNorm rejects later, with what the layers above throw.
  const answering = Object.entries(FUNCTIONS).filter(([name]) => name !== "updateBatchNorm");
  it.each(answering)("%s", (name, valid) => {
    const codes: string[] = [];
    expect(rankErrors((nn as Any)[name], valid, { codes })).toEqual([]);
    expectStored(`ranks of ${name}`, codes);
  });
});
