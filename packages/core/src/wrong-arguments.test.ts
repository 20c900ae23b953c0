// Everything public is called with arguments of the wrong kind: what comes out is an OptError, never a raw TypeError.
import { rawErrors } from "@opt/testkit";
import { afterEach, describe, expect, it } from "vitest";
import { Momentum } from "../testing/momentum";
import * as core from "./index";
import { installedMethods } from "./tensor-methods";

const x = () => core.tensor([[1, 2]]);
const labels = () => core.tensor([0], { dtype: "i32" });
const images = () => core.tensor([[[[1, 2]]]]);
const scale = core.defineRule({
  name: "scale",
  buffers: ["param"],
  scalars: ["s"],
  update: ({ param }, { s }) => ({ param: core.mul(param, s) }),
});

/** The same for each of several names. */
const each = (names: string, args: () => unknown[]) =>
  Object.fromEntries(names.split(" ").map((name) => [name, args] as const));

/** Valid arguments of each function; a name that is missing here fails the test. */
const FUNCTIONS: Readonly<Record<string, () => unknown[]>> = {
  functional: () => [Momentum, { lr: 0.1 }],
  ...each("add sub mul div pow less maximum minimum eq ne lt le gt ge", () => [x(), x()]),
  ...each("neg abs sqrt exp log tanh erf sin cos sigmoid relu log1p expm1 rsqrt square", () => [x()]),
  ...each("floor ceil sign isnan isfinite logicalNot", () => [x()]),
  ...each("silu selu relu6 hardswish mish logsigmoid", () => [x()]),
  ...each("logaddexp logicalAnd logicalOr", () => [x(), x()]),
  ...each("sum mean max min argmax argmin all any prod logsumexp", () => [x(), 0, true]),
  ...each("empty zeros ones", () => [[2], { dtype: "i32" }]),
  fma: () => [x(), x(), x()],
  lerp: () => [x(), x(), 0.5],
  einsum: () => ["ij->j", x()],
  cholesky: () => [core.eye(2), { upper: true }],
  choleskySolve: () => [core.eye(2), core.eye(2), { upper: true }],
  solve: () => [core.eye(2), core.eye(2), { left: true }],
  inverse: () => [core.eye(2)],
  slogdet: () => [core.eye(2)],
  det: () => [core.eye(2)],
  logdet: () => [core.eye(2)],
  cumprod: () => [x(), 1],
  logcumsumexp: () => [x(), 1],
  zerosLike: () => [x(), { dtype: "f64" }],
  onesLike: () => [x(), { dtype: "f64" }],
  linspace: () => [0, 1, 3, { dtype: "f64" }],
  eye: () => [2, 3, { dtype: "f64" }],
  randint: () => [1, 7, [2], { dtype: "u8" }],
  randperm: () => [3, { dtype: "u8" }],
  bernoulli: () => [core.tensor([0.5]), { generator: new core.Generator(1) }],
  multinomial: () => [x(), 1, { replacement: true }],
  arange: () => [0, 4, 2, { dtype: "f32" }],
  clamp: () => [x(), 0, 1],
  cumsum: () => [x(), 1],
  expand: () => [x(), [2, 2]],
  flatten: () => [x(), 0, 1],
  gelu: () => [x(), { approximate: "tanh" }],
  gatherAlong: () => [x(), core.tensor([[0]], { dtype: "i32" }), 1],
  maskedFill: () => [x(), x().gt(1), 0],
  norm: () => [x(), 2, 1, true],
  evict: () => [x(), () => {}],
  fillAgain: () => [[x()], () => {}, true],
  isEvicted: () => [x()],
  nonFinite: () => [[x(), x()]],
  norms: () => [[x(), x()], 2],
  oneHot: () => [labels(), 3],
  pad: () => [x(), [1, 1], { value: 2 }],
  split: () => [x(), [1, 1], 1],
  squeeze: () => [x(), 0],
  stack: () => [[x(), x()], 0],
  std: () => [x(), 1, { correction: 0, keepDim: true }],
  variance: () => [x(), 1, { correction: 0, keepDim: true }],
  argsort: () => [x(), 1, { descending: true }],
  at: () => [x(), 0, null],
  chunk: () => [x(), 2, 1],
  flip: () => [x(), [0, 1]],
  indexAdd: () => [x(), 0, labels(), x(), { alpha: 2 }],
  repeat: () => [x(), [2, 1]],
  roll: () => [x(), [1], [1]],
  scatter: () => [x(), 1, core.tensor([[0]], { dtype: "i32" }), 1],
  scatterAdd: () => [x(), 1, core.tensor([[0]], { dtype: "i32" }), x()],
  select: () => [x(), 0, 0],
  sort: () => [x(), 1, { descending: true }],
  topk: () => [x(), 1, 1, { largest: true }],
  tril: () => [x(), 0],
  triu: () => [x(), 0],
  unsqueeze: () => [x(), 0],
  versionOf: () => [x()],
  where: () => [x().lt(2), x(), 0],
  matmul: () => [x(), x(), { transposeB: true }],
  reshape: () => [x(), [2]],
  transpose: () => [x(), 0, 1],
  permute: () => [x(), [1, 0]],
  round: () => [x(), { decimals: 1 }],
  slice: () => [x(), 0, 1, 1],
  leakyRelu: () => [x(), 0.1],
  softplus: () => [x(), 1, 20],
  elu: () => [x(), 1],
  hardtanh: () => [x(), -1, 1],
  prelu: () => [x(), core.ones([1])],
  softmax: () => [x(), -1],
  logSoftmax: () => [x(), -1],
  concat: () => [[x(), x()], 0],
  gather: () => [x(), labels()],
  stepArrays: () => {
    const w = Float32Array.of(1, 2);
    return [new Momentum([core.parameter(w)]), [w], [Float32Array.of(1, 1)]];
  },
  gatherSparse: () => [x(), labels()],
  rowSparse: () => [labels(), x(), [1, 2]],
  binaryCrossEntropyTerms: () => [x(), x()],
  withFlatGradient: () => [x()],
  logAddExp3: () => [x(), x(), 0],
  crossEntropyRows: () => [x(), labels(), -100],
  fusedAttention: () => [x(), x(), x(), { scale: 1, isCausal: true }],
  fusedBatchNorm: () => [core.ones([2, 2, 1]), core.ones([2]), core.zeros([2]), 1e-5],
  pathSums: () => [core.zeros([2, 1]), core.zeros([3, 2, 1]), core.zeros([2, 1])],
  fusedLstm: () => [
    core.ones([1, 1, 4]),
    core.ones([4, 1]),
    core.ones([4]),
    core.ones([1, 1]),
    core.ones([1, 1]),
    { reverse: true },
  ],
  layerNorm: () => [x(), core.ones([2]), core.zeros([2]), 1e-5],
  unfold: () => [images(), 1, { stride: 1 }],
  conv2d: () => [images(), images(), null, { stride: 1 }],
  convTranspose2d: () => [images(), images(), null, { stride: 1, outputPadding: 0 }],
  avgPool2d: () => [images(), 1, { padding: 0 }],
  adaptiveAvgPool2d: () => [images(), [1, null]],
  resample: () => [
    images(),
    [
      { indices: [[0]], weights: [[1]] },
      { indices: [[0]], weights: [[1]] },
    ],
  ],
  maxPool2d: () => [images(), 1, { padding: 0 }],
  tensor: () => [[1, 2], { shape: [2], dtype: "f32", requiresGrad: true }],
  parameter: () => [[1, 2], { shape: [2], name: "w" }],
  tensorFromBytes: () => [new Uint8Array(8), [2], { dtype: "f32" }],
  span: () => [x(), 0, 1],
  withGradient: () => [x(), [x()], () => [null]],
  enableQ8: () => [],
  enableStochasticRounding: () => [],
  viewAsComplex: () => [x()],
  viewAsReal: () => [core.viewAsComplex(core.tensor([1, 2]))],
  onGradient: () => [core.parameter([1]), () => {}],
  hostBytes: () => [x(), "read"],
  compile: () => [() => 1, { check: "never" }],
  dependsOn: () => [() => 1, () => 1],
  observed: () => [{ scale: 2 }],
  combine: () => [x(), [x()], "add", 2],
  full: () => [[2], 1, { dtype: "i32" }],
  rand: () => [[2], { generator: new core.Generator(1) }],
  randn: () => [[2], { dtype: "f16" }],
  tidy: () => [() => 1],
  keep: () => [x()],
  markReplaced: () => [x()],
  noGrad: () => [() => 1],
  autocast: () => ["bf16", () => 1],
  autocastDType: () => [],
  lowered: () => [x()],
  widened: () => [x()],
  recompute: () => [() => 1],
  isRecomputing: () => [],
  enableGrad: () => [() => 1],
  manualSeed: () => [1],
  traceAllocations: () => [false],
  applyRule: () => [scale, { param: x() }, { s: 2 }],
  applyRuleInPlace: () => [scale, [{ param: x() }], { s: 2 }],
  grad: () => {
    const leaf = core.parameter([1, 2]);
    return [leaf.mul(leaf).sum(), [leaf], { createGraph: false }];
  },
};

/** Helpers of packages and what the optimizers' and devices' own tests try. */
const ELSEWHERE = new Set(
  "check maskedSelect nonzero profile detectAnomaly needing runsOnce afterEachRun algorithmOf ruleHashes checkOptions checkTensor checkGenerator checkBetas checkBoolean checkNotNegative checkNotSummary show defineRule everyVariant ruleByVariant l1 l2 clipGradNorm clipGradNormEach clipGradValue init listDevices registerBackend hostIo registerHostIo".split(
    " ",
  ),
);

/** Of methods that are no functions of the same arguments. */
const METHODS: Readonly<Record<string, () => unknown[]>> = {
  set: () => [[[3, 4]]],
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
    expect(await rawErrors(name, call as never, FUNCTIONS[name]!)).toEqual([]);
  });
});

describe("methods of tensors", () => {
  it.each(installedMethods.filter((name): name is string => typeof name === "string"))("%s", async (name) => {
    const call = (...args: unknown[]) => {
      const leaf = core.parameter([[1, 2]]) as unknown as Record<string, (...args: unknown[]) => unknown>;
      return leaf[name]!(...args);
    };
    const valid = METHODS[name] ?? (() => FUNCTIONS[name]?.().slice(1) ?? []);
    expect(await rawErrors(name, call, valid)).toEqual([]);
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
