// Everything public is called with arguments of the wrong kind: what comes out is an OptError, never a raw TypeError.
import { jumpsAtZero, rankErrors, rawErrors, storedCodes, withUndefined } from "@opt/testkit";
import { afterEach, describe, expect, it } from "vitest";
import { Momentum } from "../testing/momentum";
import { FUNCTIONS } from "../testing/valid-arguments";
import * as core from "./index";
import { installedMethods } from "./tensor-methods";

const x = () => core.tensor([[1, 2]]);

/** Programs branch on codes: each wrong argument keeps its own. */
const expectStored = storedCodes(new URL("../testing/goldens/error-codes.json", import.meta.url));

/** Helpers of packages and what the optimizers' and devices' own tests try. */
const ELSEWHERE = new Set(
  "check maskedSelect nonzero unique bincount equal allclose profile detectAnomaly needing runsOnce afterEachRun algorithmOf ruleHashes checkOptions checkTensor checkGenerator checkValue fusedLerp checkBetas checkBoolean checkNotNegative checkNotSummary nearest show defineRule everyVariant ruleByVariant modifiedRules l1 l2 clipGradNorm clipGradNormEach clipGradValue init listDevices registerBackend hostIo registerHostIo".split(
    " ",
  ),
);

/** Of methods that are no functions of the same arguments. */
const METHODS: Readonly<Record<string, () => unknown[]>> = {
  set: () => [[[3, 4]]],
  assign: () => [[0, [0, 1]], [3]],
  backward: () => [x(), { retainGraph: true }],
  to: () => ["f64"],
  var: () => [1, { correction: 0, keepDim: true }],
};

afterEach(() => {
  core.manualSeed(0);
  core.traceAllocations(false); // later files of the process would take up to ten times as long
});

describe("functions", () => {
  const exported = Object.entries(core).filter(([name, value]) => typeof value === "function" && !/^[A-Z]/.test(name));
  it.each(exported.filter(([name]) => !ELSEWHERE.has(name)))("%s", async (name, call) => {
    expect(FUNCTIONS, `valid arguments of ${name}`).toHaveProperty(name);
    core.tidy(() => (call as (...args: unknown[]) => unknown)(...FUNCTIONS[name]!()));
    const codes: string[] = [];
    const takesRule = name.startsWith("applyRule"); // which is an object, too, but made by defineRule alone
    expect(await rawErrors(name, call as never, FUNCTIONS[name]!, codes, !takesRule)).toEqual([]);
    expectStored(name, codes);
  });
});

describe("tensors of other ranks and extents", () => {
  const functions = Object.entries(core).filter(([name]) => name in FUNCTIONS);
  it.each(functions)("%s", (name, call) => {
    const codes: string[] = [];
    expect(rankErrors(call as never, FUNCTIONS[name]!, { codes })).toEqual([]);
    expectStored(`ranks of ${name}`, codes);
  });
});

describe("options of undefined are as those that are left out", () => {
  const functions = Object.entries(core).filter(([name]) => name in FUNCTIONS);
  it.each(functions)("%s", (name, call) => {
    const seeded = (...args: never[]) => {
      core.manualSeed(1);
      return (call as (...args: never[]) => unknown)(...args);
    };
    const [given, left] = withUndefined(seeded, FUNCTIONS[name]!) ?? [];
    expect(given).toBe(left);
  });
});

describe("0 is 0, and not left out", () => {
  const JUMPS = ["arange", "norm"]; // a tensor of none, and the count of what is not 0
  const functions = Object.entries(core).filter(([name]) => name in FUNCTIONS && !JUMPS.includes(name));
  it.each(functions)("%s", (name, call) => {
    const isDrawn = (value: unknown) => value instanceof core.Tensor && value.dtype === "f32" && !value.requiresGrad;
    const seeded = (...args: never[]) => {
      core.manualSeed(42); // of whose first numbers one is above 0 and one below
      const drawn = args.map((x: core.Tensor) => (isDrawn(x) ? core.rand(x.shape).mul(2).sub(1) : x));
      return (call as (...args: unknown[]) => unknown)(...drawn);
    };
    expect(jumpsAtZero(seeded, FUNCTIONS[name]!)).toEqual([]);
  });
});

describe("numbers beside bytes that cannot hold them", () => {
  const functions = Object.entries(core).filter(([name]) => name in FUNCTIONS);
  it.each(functions)("%s", (name, call) => {
    const isTensor = (value: unknown) => value instanceof core.Tensor;
    const valid = () => FUNCTIONS[name]!().map((x) => (isTensor(x) && x.dtype === "f32" ? x.detach().to("u8") : x));
    const codeOf = (args: unknown[]) => {
      try {
        core.tidy(() => (call as (...args: unknown[]) => unknown)(...args));
        return "";
      } catch (error) {
        return (error as core.OptError).code;
      }
    };
    const places = valid().flatMap((value, i) => (isTensor(value) || typeof value === "number" ? [i] : []));
    const codes = places.flatMap((place) => [300, -1].map((number) => codeOf(valid().with(place, number))));
    expectStored(`bytes of ${name}`, codes);
  });
});

describe("methods of tensors", () => {
  it.each(installedMethods.filter((name): name is string => typeof name === "string"))("%s", async (name) => {
    const call = (...args: unknown[]) => {
      const leaf = core.parameter([[1, 2]]) as unknown as Record<string, (...args: unknown[]) => unknown>;
      return leaf[name]!(...args);
    };
    const valid = METHODS[name] ?? (() => FUNCTIONS[name]?.().slice(1) ?? []);
    const codes: string[] = [];
    expect(await rawErrors(name, call, valid, codes)).toEqual([]);
    expectStored(`Tensor.${name}`, codes);
  });

  it("properties", async () => {
    for (const property of ["grad", "requiresGrad"] as const) {
      const assign = (value: never) => {
        core.parameter([1])[property] = value;
      };
      expect(await rawErrors(property, assign, () => [null])).toEqual([]);
    }
  });
});

describe("messages say what was meant", () => {
  const w = () => core.parameter([1]);
  const model = { parameters: () => [w()] } as never;
  const adam = () => new Momentum([["w", w()]], { lr: 0.1 });
  const logged = (state: object) => JSON.parse(JSON.stringify(state));
  const stepped = () => {
    const optimizer = adam();
    optimizer.groups[0]!.params[0]!.grad = core.tensor([1]);
    optimizer.step();
    return optimizer;
  };
  it.each<[string, () => unknown, string]>([
    ["float32", () => x().to("float32"), 'Did you mean "f32"?'],
    ["torch.float16", () => x().to("torch.float16"), 'Did you mean "f16"?'],
    ["half", () => x().to("half"), 'Did you mean "f16"?'],
    ["bfloat16", () => x().to("bfloat16"), 'Did you mean "bf16"?'],
    ["int32", () => x().to("int32"), 'Did you mean "i32"?'],
    ["F32", () => x().to("F32"), 'Did you mean "f32"?'],
    ["a dtype option", () => core.zeros([1], { dtype: "float32" as never }), 'Did you mean "f32"?'],
    ["no dtype", () => core.zeros([1], { dtype: "constructor" as never }), 'For example "f32".'],
    ["a transpose", () => core.matmul(x(), x(), { transposeb: true } as never), "Did you mean transposeB?"],
    ["a transpose that is neither", () => x().matmul(x(), { transposeB: 1 as never }), "must be a boolean, got 1"],
    ["a device", () => x().to("JS"), 'Did you mean "js"?'],
    ["no device", () => x().to("CUDA"), "Import its package first: @opt/kernels-wasm, -cpu, -webgpu or -cuda."],
    ["a model as params", () => new Momentum(model), "Pass model.parameters()."],
    ["a model among params", () => new Momentum([model]), "Pass model.parameters()."],
    ["a model in a group", () => new Momentum([{ params: model }]), "Pass model.parameters()."],
    ["a model as averages", () => new core.ExponentialMovingAverage(model), "Pass model.parameters()."],
    ["names to clip", () => core.clipGradNorm([["w", w()]] as never, 1), "without names, got ["],
    ["a closure", () => adam().step(async () => 1), "[Momentum.step] body must be synchronous"],
    ["no rule", () => core.defineRule({} as never), "[defineRule] a rule needs name"],
    ["half a rule", () => core.defineRule({ name: "r", buffers: ["a"], scalars: [] } as never), "needs update"],
    ["no tensor but a name", () => core.checkTensor("f", [w()], "x"), "got [a Tensor]"],
    ["a state that was logged", () => adam().loadStateDict(logged(stepped().stateDict())), "written by JSON.stringify"],
    [
      "averages that were logged",
      () => {
        const ema = new core.ExponentialMovingAverage([w()]);
        ema.loadStateDict(logged(ema.stateDict()));
      },
      "written by JSON.stringify",
    ],
  ])("%s", (_, call, words) =>
    expect(call).toThrow(expect.objectContaining({ name: "OptError", message: expect.stringContaining(words) })),
  );
});

it("the generator", async () => {
  for (const method of ["manualSeed", "permutation", "loadStateDict"] as const) {
    const call = (value: never) => new core.Generator(1)[method](value);
    expect(await rawErrors(method, call, () => [1])).toEqual([]);
  }
  expect(
    await rawErrors(
      "Generator",
      (seed: never) => new core.Generator(seed),
      () => [1],
    ),
  ).toEqual([]);
});
