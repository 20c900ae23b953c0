/** Arguments that every public function takes, on the default device: tests call them with others in their places. */
import { argumentsOf, type Definition, operandsOf } from "@opt/testkit";
import * as core from "../src/index";
import { Momentum } from "./momentum";
import { DEFINITIONS } from "./op-calls";

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

function argumentsFor(definition: Definition): unknown[] {
  const tensors = operandsOf(definition).map(({ any, kind, letters }) => {
    const shape = any === "none" || letters !== "" ? [...letters].map((letter) => Number(letter) || 2) : [1, 2];
    if (kind === "mask") return core.ones(shape, { dtype: "bool" });
    return kind === "indices" ? core.zeros(shape, { dtype: "i32" }) : core.ones(shape);
  });
  return argumentsOf(definition, tensors, { axis: 1, flag: true });
}

/** Valid arguments of each function; a name that is missing here fails wrong-arguments.test.ts. */
export const FUNCTIONS: Readonly<Record<string, () => unknown[]>> = {
  functional: () => [Momentum, { lr: 0.1 }],
  combine: () => [
    [
      ["w", core.parameter([[1, 2]])],
      ["b", core.parameter([1])],
    ],
    { matrices: Momentum, rest: Momentum },
  ],
  scheduleFree: () => [new Momentum([core.parameter([1])])],
  ...each("empty zeros ones", () => [[2], { dtype: "i32" }]),
  ...Object.fromEntries([...DEFINITIONS].map(([name, definition]) => [name, () => argumentsFor(definition)])),
  reshape: () => [x(), [2]],
  repeat: () => [x(), [2, 1]],
  expand: () => [x(), [2, 2]],
  chunk: () => [x(), 2, 1],
  flatten: () => [x(), 0, 1],
  cholesky: () => [core.eye(2), { upper: true }],
  choleskySolve: () => [core.eye(2), core.eye(2), { upper: true }],
  solve: () => [core.eye(2), core.eye(2), { left: true }],
  inverse: () => [core.eye(2)],
  slogdet: () => [core.eye(2)],
  det: () => [core.eye(2)],
  logdet: () => [core.eye(2)],
  qr: () => [core.eye(2), { mode: "reduced" }],
  eigh: () => [core.eye(2), { upper: true }],
  eigvalsh: () => [core.eye(2), { upper: true }],
  svd: () => [core.eye(2), { fullMatrices: false }],
  ...each("svdvals lu", () => [core.eye(2)]),
  pinv: () => [core.eye(2), { rtol: 0.1, atol: 0.1 }],
  matrixExp: () => [core.eye(2)],
  matrixNorm: () => [core.eye(2), "nuc", [0, 1], true],
  matrixPower: () => [core.eye(2), -2],
  lstsq: () => [core.eye(2), core.eye(2), { rcond: 0.1 }],
  triangularSolve: () => [core.eye(2), core.eye(2), { upper: true, left: false, unitriangular: true }],
  ...each("fft ifft rfft irfft", () => [x(), { n: 3, axis: 1, norm: "ortho" }]),
  ...each("fft2 ifft2 rfft2 irfft2 fftn ifftn", () => [x(), { sizes: [2, 2], axes: [0, 1], norm: "ortho" }]),
  ...each("fftshift ifftshift", () => [x(), 1]),
  ...each("fftfreq rfftfreq", () => [3, 0.5, { dtype: "f64" }]),
  ...each("complex polar", () => [x(), x()]),
  ...each("real imag conj angle complexAbs", () => [core.viewAsComplex(x())]),
  complexMul: () => [core.viewAsComplex(x()), core.viewAsComplex(x())],
  complexEinsum: () => ["i->", core.viewAsComplex(x())],
  emptyLike: () => [x(), { dtype: "f64" }],
  zerosLike: () => [x(), { dtype: "f64" }],
  onesLike: () => [x(), { dtype: "f64" }],
  ...each("trilIndices triuIndices", () => [2, 3, 1, { device: "js" }]),
  linspace: () => [0, 1, 3, { dtype: "f64" }],
  eye: () => [2, 3, { dtype: "f64" }],
  randint: () => [1, 7, [2], { dtype: "u8" }],
  randperm: () => [3, { dtype: "u8" }],
  bernoulli: () => [core.tensor([0.5]), { generator: new core.Generator(1) }],
  multinomial: () => [x(), 1, { replacement: true }],
  arange: () => [0, 4, 2, { dtype: "f32" }],
  gelu: () => [x(), { approximate: "tanh" }],
  evict: () => [x(), () => {}],
  fillAgain: () => [[x()], () => {}, true],
  isEvicted: () => [x()],
  nonFinite: () => [[x(), x()]],
  norms: () => [[x(), x()], 2],
  pad: () => [x(), [1, 1], { value: 2 }],
  split: () => [x(), [1, 1], 1],
  std: () => [x(), 1, { correction: 0, keepDim: true }],
  variance: () => [x(), 1, { correction: 0, keepDim: true }],
  argsort: () => [x(), 1, { descending: true }],
  divideGradients: () => {
    const w = core.parameter([1, 2]);
    w.grad = core.tensor([2, 4]);
    return [[w], core.tensor(2)];
  },
  indexPut: () => [x(), [[0, 1], labels()], 2, { accumulate: true }],
  roll: () => [x(), [1], [1]],
  sort: () => [x(), 1, { descending: true }],
  topk: () => [x(), 1, 1, { largest: true }],
  versionOf: () => [x()],
  matmul: () => [x(), x(), { transposeB: true }],
  round: () => [x(), { decimals: 1 }],
  slice: () => [x(), 0, 1, 1],
  prelu: () => [x(), core.ones([1])],
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
  fusedGroupNorm: () => [core.ones([2, 2, 1]), core.ones([2]), core.zeros([2]), 1, 1e-5],
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
  vmap: () => [(a: core.Tensor) => a, { inAxes: 0, outAxes: 0 }],
  jvp: () => [(a: core.Tensor) => a, x(), x(), { createGraph: true }],
  vjp: () => [(a: core.Tensor) => a, x(), x(), { createGraph: true }],
  jacobian: () => [(a: core.Tensor) => a, x(), { createGraph: true }],
  hessian: () => [(a: core.Tensor) => a.sum(), x(), { createGraph: true }],
  hvp: () => [(a: core.Tensor) => a.sum(), x(), x(), { createGraph: true }],
  viewAsComplex: () => [x()],
  viewAsReal: () => [core.viewAsComplex(core.tensor([1, 2]))],
  onGradient: () => [core.parameter([1]), () => {}],
  hostBytes: () => [x(), "read"],
  compile: () => [() => 1, { check: "never" }],
  dependsOn: () => [() => 1, () => 1],
  observed: () => [{ scale: 2 }],
  reduceInto: () => [x(), [x()], "add", 2],
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
