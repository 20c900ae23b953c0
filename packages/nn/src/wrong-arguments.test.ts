// Every layer, loss and initialiser is called with arguments of the wrong kind: what comes out is an OptError, never a raw TypeError.
import { Generator, ones, Tensor, tensor, zeros } from "@opt/core";
import { expectCode, rankErrors, rawErrors, storedCodes } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import * as nn from "./index";

/** Programs branch on codes: each wrong argument keeps its own. */
const expectStored = storedCodes(new URL("../testing/goldens/error-codes.json", import.meta.url));

const rows = () => zeros([2, 3]);
const narrow = () => ({ dimFeedforward: 2, ...seeded() });
const seeded = () => ({ generator: new Generator(1) });

/** The same for each of several names. */
const each = <Args>(names: string, args: Args) => Object.fromEntries(names.split(" ").map((name) => [name, args]));

/** Valid arguments of constructors, and of forward. A name that is missing here fails the test. */
const LAYERS: Readonly<Record<string, [() => unknown[], () => unknown[]]>> = {
  ...each("ReLU GELU Tanh Sigmoid SiLU Flatten Identity SELU ReLU6 Hardswish Mish LogSigmoid", [
    () => [],
    () => [rows()],
  ]),
  ELU: [() => [1], () => [rows()]],
  Hardtanh: [() => [-1, 1], () => [rows()]],
  Softmax: [() => [1], () => [rows()]],
  LogSoftmax: [() => [1], () => [rows()]],
  PReLU: [() => [3, { init: 0.1 }], () => [rows()]],
  Dropout1d: [() => [0.5, seeded()], () => [zeros([2, 3, 4])]],
  Dropout2d: [() => [0.5, seeded()], () => [zeros([2, 3, 4, 4])]],
  LeakyReLU: [() => [0.1], () => [rows()]],
  Softplus: [() => [{ beta: 1, threshold: 20 }], () => [rows()]],
  AvgPool2d: [() => [1, { padding: 0 }], () => [zeros([1, 1, 2, 2])]],
  AdaptiveAvgPool2d: [() => [[1, null]], () => [zeros([1, 1, 2, 2])]],
  Conv1d: [() => [1, 1, 1, { groups: 1, ...seeded() }], () => [zeros([1, 1, 2])]],
  ConvTranspose2d: [() => [1, 1, 1, { outputPadding: 0, stride: 2 }], () => [zeros([1, 1, 2, 2])]],
  Conv3d: [() => [1, 1, 1, { padding: "same", paddingMode: "circular", ...seeded() }], () => [zeros([1, 1, 2, 2, 2])]],
  ConvTranspose1d: [() => [1, 1, 1, { outputPadding: 0, stride: 2 }], () => [zeros([1, 1, 2])]],
  MaxPool1d: [() => [1, { stride: 1, ceilMode: true }], () => [zeros([1, 1, 2])]],
  AvgPool1d: [() => [1, { stride: 1, countIncludePad: false }], () => [zeros([1, 1, 2])]],
  AdaptiveAvgPool1d: [() => [1], () => [zeros([1, 1, 2])]],
  Upsample: [() => [{ size: [3, 3], mode: "bilinear", alignCorners: true }], () => [zeros([1, 1, 2, 2])]],
  PixelShuffle: [() => [2], () => [zeros([1, 4, 2, 2])]],
  Unflatten: [() => [1, [3, -1]], () => [rows()]],
  GroupNorm: [() => [1, 3, { eps: 1e-5 }], () => [rows()]],
  RMSNorm: [() => [3, { eps: 1e-5 }], () => [rows()]],
  MultiheadAttention: [() => [3, 1, { dropout: 0.5 }], () => [rows(), rows(), rows(), { isCausal: true }]],
  TransformerEncoderLayer: [() => [3, 1, narrow()], () => [rows(), { isCausal: true }]],
  TransformerDecoderLayer: [() => [3, 1, narrow()], () => [rows(), rows(), { tgtIsCausal: true }]],
  TransformerEncoder: [() => [new nn.TransformerEncoderLayer(3, 1, narrow()), 1, { norm: null }], () => [rows()]],
  TransformerDecoder: [() => [new nn.TransformerDecoderLayer(3, 1, narrow()), 1], () => [rows(), rows()]],
  Transformer: [
    () => [3, 1, { numEncoderLayers: 1, numDecoderLayers: 1, ...narrow() }],
    () => [rows(), rows(), { srcIsCausal: true }],
  ],
  RNN: [() => [3, 2, { nonlinearity: "relu" }], () => [rows(), zeros([1, 2]), { lengths: [2] }]],
  RNNCell: [() => [3, 2, { nonlinearity: "relu" }], () => [rows(), zeros([2, 2])]],
  LSTMCell: [() => [3, 2, { bias: false }], () => [rows(), [zeros([2, 2]), zeros([2, 2])]]],
  GRUCell: [() => [3, 2, seeded()], () => [rows(), zeros([2, 2])]],
  LSTM: [() => [3, 2, { numLayers: 2 }], () => [rows(), [zeros([2, 2]), zeros([2, 2])]]],
  GRU: [() => [3, 2, { bidirectional: true }], () => [rows(), zeros([2, 2])]],
  BatchNorm1d: [() => [3, { momentum: 0.1, eps: 1e-5 }], () => [rows()]],
  BatchNorm2d: [() => [1, { affine: false }], () => [zeros([1, 1, 2, 2])]],
  InstanceNorm1d: [() => [3, { affine: true }], () => [zeros([1, 3, 2])]],
  InstanceNorm2d: [() => [1, { trackRunningStats: true }], () => [zeros([1, 1, 2, 2])]],
  BatchNorm3d: [() => [1, { affine: false }], () => [zeros([1, 1, 2, 2, 2])]],
  InstanceNorm3d: [() => [1, { trackRunningStats: true }], () => [zeros([1, 1, 2, 2, 2])]],
  ConvTranspose3d: [() => [1, 1, 1, { outputPadding: 0, stride: 2 }], () => [zeros([1, 1, 2, 2, 2])]],
  MaxPool3d: [() => [1, { stride: 1, ceilMode: true }], () => [zeros([1, 1, 2, 2, 2])]],
  AvgPool3d: [() => [1, { stride: 1, divisorOverride: 2 }], () => [zeros([1, 1, 2, 2, 2])]],
  AdaptiveAvgPool3d: [() => [[1, null, 2]], () => [zeros([1, 1, 2, 2, 2])]],
  AdaptiveMaxPool1d: [() => [1], () => [zeros([1, 1, 2])]],
  AdaptiveMaxPool2d: [() => [[1, null]], () => [zeros([1, 1, 2, 2])]],
  AdaptiveMaxPool3d: [() => [[1, null, 2]], () => [zeros([1, 1, 2, 2, 2])]],
  Dropout3d: [() => [0.5, seeded()], () => [zeros([2, 3, 4, 4, 4])]],
  GLU: [() => [1], () => [zeros([2, 4])]],
  Bilinear: [() => [3, 1, 2, { bias: true, ...seeded() }], () => [rows(), zeros([2, 1])]],
  CosineSimilarity: [() => [{ axis: 1, eps: 1e-8 }], () => [rows(), rows()]],
  PairwiseDistance: [() => [{ p: 2, eps: 1e-6, keepDim: true }], () => [rows(), rows()]],
  Unfold: [() => [1, { stride: 1, padding: 0, dilation: 1 }], () => [zeros([1, 1, 2, 2])]],
  Fold: [() => [2, 1, { stride: 1, padding: 0, dilation: 1 }], () => [zeros([1, 1, 4])]],
  PixelUnshuffle: [() => [2], () => [zeros([1, 1, 2, 2])]],
  ...each("L1Loss MSELoss SoftMarginLoss", [() => [{ reduction: "sum" }], () => [rows(), rows()]]),
  HuberLoss: [() => [{ delta: 2 }], () => [rows(), rows()]],
  SmoothL1Loss: [() => [{ beta: 2 }], () => [rows(), rows()]],
  CrossEntropyLoss: [() => [{ weight: ones([3]), labelSmoothing: 0.1 }], () => [rows(), [0, 1]]],
  NLLLoss: [() => [{ weight: ones([3]), axis: 1 }], () => [rows(), [0, 1]]],
  KLDivLoss: [() => [{ reduction: "batchMean", logTarget: true }], () => [rows(), rows()]],
  BCELoss: [() => [{ weight: ones([3]) }], () => [rows(), rows()]],
  BCEWithLogitsLoss: [() => [{ weight: ones([3]), posWeight: ones([3]) }], () => [rows(), rows()]],
  CTCLoss: [() => [{ blank: 0, zeroInfinity: true }], () => [zeros([3, 2, 4]), [[1], [2]], [3, 3], [1, 1]]],
  GaussianNLLLoss: [() => [{ full: true, eps: 1e-3 }], () => [rows(), rows(), ones([2])]],
  PoissonNLLLoss: [() => [{ logInput: false, full: true, eps: 1e-3 }], () => [rows(), rows()]],
  MarginRankingLoss: [() => [{ margin: 1 }], () => [rows(), rows(), rows()]],
  MultiMarginLoss: [() => [{ p: 2, margin: 1, weight: ones([3]) }], () => [rows(), [0, 1]]],
  HingeEmbeddingLoss: [() => [{ margin: 2 }], () => [rows(), rows()]],
  MultiLabelMarginLoss: [
    () => [{ reduction: "sum" }],
    () => [
      rows(),
      [
        [0, 1, -1],
        [2, -1, 0],
      ],
    ],
  ],
  MultiLabelSoftMarginLoss: [() => [{ weight: ones([3]) }], () => [rows(), rows()]],
  TripletMarginLoss: [() => [{ margin: 1, p: 2, eps: 1e-6, swap: true }], () => [rows(), rows(), rows()]],
  CosineEmbeddingLoss: [() => [{ margin: 0.5 }], () => [rows(), rows(), ones([2])]],
  Linear: [() => [3, 2, { bias: true, ...seeded() }], () => [rows()]],
  Embedding: [() => [3, 2, seeded()], () => [tensor([0], { dtype: "i32" })]],
  EmbeddingBag: [
    () => [3, 2, { mode: "sum", paddingIdx: 0 }],
    () => [tensor([0, 1], { dtype: "i32" }), { offsets: tensor([0, 1], { dtype: "i32" }) }],
  ],
  LayerNorm: [() => [3, { eps: 1e-5 }], () => [rows()]],
  Conv2d: [() => [1, 1, 1, { stride: 1, padding: 0, ...seeded() }], () => [zeros([1, 1, 2, 2])]],
  MaxPool2d: [() => [1, { stride: 1 }], () => [zeros([1, 1, 2, 2])]],
  Dropout: [() => [0.5, seeded()], () => [rows()]],
  Sequential: [() => [new nn.ReLU(), new nn.Tanh()], () => [rows()]],
};

const FUNCTIONS: Readonly<Record<string, () => unknown[]>> = {
  crossEntropy: () => [rows(), [0, 1], { weight: ones([3]), labelSmoothing: 0.1, reduction: "sum" }],
  mseLoss: () => [rows(), rows(), { reduction: "none" }],
  l1Loss: () => [rows(), rows(), { reduction: "none" }],
  huberLoss: () => [rows(), rows(), { delta: 2 }],
  smoothL1Loss: () => [rows(), rows(), { beta: 2 }],
  binaryCrossEntropy: () => [rows(), rows(), { weight: ones([3]) }],
  gaussianNllLoss: () => [rows(), rows(), ones([2]), { full: true, eps: 1e-3 }],
  poissonNllLoss: () => [rows(), rows(), { logInput: false, full: true, eps: 1e-3 }],
  marginRankingLoss: () => [rows(), rows(), rows(), { margin: 1 }],
  multiMarginLoss: () => [rows(), [0, 1], { p: 2, margin: 1, weight: ones([3]) }],
  tripletMarginLoss: () => [rows(), rows(), rows(), { margin: 1, p: 2, eps: 1e-6, swap: true }],
  cosineEmbeddingLoss: () => [rows(), rows(), ones([2]), { margin: 0.5 }],
  cosineSimilarity: () => [rows(), rows(), { axis: 0, eps: 1e-8 }],
  normalize: () => [rows(), { p: 2, axis: 0, eps: 1e-12 }],
  pairwiseDistance: () => [rows(), rows(), { p: 2, eps: 1e-6, keepDim: true }],
  ctcLoss: () => [zeros([3, 2, 4]), [[1], [2]], [3, 3], [1, 1], { blank: 0, zeroInfinity: true }],
  interpolate: () => [zeros([1, 1, 2]), { scaleFactor: 2, mode: "linear" }],
  klDiv: () => [rows(), rows(), { reduction: "batchMean", logTarget: true }],
  bceWithLogits: () => [rows(), rows(), { weight: ones([3]), posWeight: ones([3]) }],
  scaledDotProductAttention: () => [rows(), rows(), rows(), { isCausal: true, dropoutP: 0.5, ...seeded() }],
  nllLoss: () => [rows(), [0, 1], { weight: ones([3]), axis: 1, reduction: "sum" }],
  buffer: () => [rows(), { persistent: false }],
  isBatchNorm: () => [new nn.BatchNorm1d(3)],
  updateBatchNorm: () => [new nn.BatchNorm1d(3), [rows()]],
  functionalCall: () => [new nn.Linear(3, 2), { bias: zeros([2]) }, rows()],
  gainOf: () => ["relu", 0.1],
  constant: () => [rows(), 1],
  zeros: () => [rows()],
  ones: () => [rows()],
  uniform: () => [rows(), 0, 1, seeded()],
  normal: () => [rows(), 0, 1, seeded()],
  truncNormal: () => [rows(), { mean: 0, std: 1, a: -2, b: 2, ...seeded() }],
  orthogonal: () => [rows(), { gain: 2, ...seeded() }],
  eye: () => [rows()],
  dirac: () => [zeros([2, 2, 3]), { groups: 2 }],
  sparse: () => [rows(), { sparsity: 0.5, std: 0.1, ...seeded() }],
  linear: () => [rows(), zeros([4, 3]), zeros([4])],
  bilinear: () => [rows(), zeros([2, 1]), zeros([4, 3, 1]), zeros([4])],
  dropout: () => [rows(), 0.5, { training: true, ...seeded() }],
  gumbelSoftmax: () => [rows(), { tau: 1, hard: true, axis: 1, ...seeded() }],
  gridSample: () => [
    zeros([1, 1, 2, 2]),
    zeros([1, 3, 3, 2]),
    { mode: "nearest", paddingMode: "border", alignCorners: true },
  ],
  affineGrid: () => [zeros([1, 2, 3]), [1, 1, 2, 2], { alignCorners: true }],
  hingeEmbeddingLoss: () => [rows(), rows(), { margin: 2, reduction: "sum" }],
  softMarginLoss: () => [rows(), rows(), { reduction: "sum" }],
  multiLabelMarginLoss: () => [
    rows(),
    [
      [0, 1, -1],
      [2, -1, 0],
    ],
    { reduction: "sum" },
  ],
  multiLabelSoftMarginLoss: () => [rows(), rows(), { weight: ones([3]), reduction: "sum" }],
  weightNorm: () => [new nn.Linear(3, 2), "weight", { axis: 0 }],
  spectralNorm: () => [new nn.Linear(3, 2), "weight", { nPowerIterations: 1, eps: 1e-12, axis: 0, ...seeded() }],
  removeParametrization: () => [nn.weightNorm(new nn.Linear(3, 2)), "weight"],
  ...each("kaimingUniform kaimingNormal xavierUniform xavierNormal", () => [rows(), seeded()]),
};

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
