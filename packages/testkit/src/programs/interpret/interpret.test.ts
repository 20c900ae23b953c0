// The interpretation itself: its gradients against finite differences of its values, and PyTorch's answers for what has none.
import { describe, expect, it } from "vitest";
import { Random } from "../../numbers/random";
import "../../numbers/matcher";
import { sizeOf } from "../numbers";
import type { Options, Shape } from "../program";
import { interpretation } from "./interpret";
import { constant, filled, gradients, Node, times } from "./node";
import { moved } from "./places";
import { sum } from "./reducing";

interface Case {
  readonly op: string;
  readonly shapes: readonly Shape[];
  readonly options?: Options;
  /** Operands that are indices or labels below this. */
  readonly whole?: readonly (number | undefined)[];
}

const unary = (op: string): Case => ({ op, shapes: [[2, 3]] });
const CASES: readonly Case[] = [
  ...["neg", "abs", "relu", "relu6", "hardtanh", "leakyRelu", "elu", "exp", "tanh", "sigmoid", "sin", "cos"].map(unary),
  ...["erf", "gelu", "geluTanh", "silu", "softplus", "square"].map(unary),
  ...["add", "sub", "mul", "maximum", "minimum"].map((op) => ({ op, shapes: [[2, 3], [3]] })),
  {
    op: "div",
    shapes: [
      [2, 3],
      [2, 1],
    ],
  },
  { op: "fma", shapes: [[2, 3], [3], []] },
  { op: "clamp", shapes: [[7]], options: { low: -0.6, high: 0.9 } },
  { op: "where", shapes: [[2, 3], [3], [2, 1]], whole: [2] },
  { op: "slice", shapes: [[4, 2]], options: { start: 1, end: -1, axis: 0 } },
  { op: "permute", shapes: [[2, 3, 4]], options: { axes: [2, 0, 1] } },
  {
    op: "concat",
    shapes: [
      [2, 3],
      [2, 1],
    ],
    options: { axis: -1 },
  },
  {
    op: "stack",
    shapes: [
      [2, 3],
      [2, 3],
    ],
    options: { axis: 1 },
  },
  { op: "pad", shapes: [[2, 3]], options: { padding: [1, -1, 0, 2], value: 0.5 } },
  { op: "tril", shapes: [[3, 4]], options: { diagonal: 0 } },
  { op: "flip", shapes: [[2, 3]], options: { axis: 1 } },
  { op: "roll", shapes: [[2, 3]], options: { by: -2, axis: 1 } },
  { op: "gather", shapes: [[3, 2], [4]], whole: [undefined, 3] },
  {
    op: "gatherAlong",
    shapes: [
      [3, 2],
      [2, 2],
    ],
    options: { axis: 0 },
    whole: [undefined, 3],
  },
  ...["sum", "mean", "max", "min", "logsumexp", "var", "prod"].map((op) => ({
    op,
    shapes: [[2, 3, 2]],
    options: { axis: 1 },
  })),
  ...[1, 2, 3, "Infinity"].map((p) => ({ op: "norm", shapes: [[2, 3]], options: { p, axis: 1 } })),
  ...["cumsum", "cumprod", "logcumsumexp", "softmax", "logSoftmax"].map((op) => ({
    op,
    shapes: [[3, 4]],
    options: { axis: 0 },
  })),
  { op: "sort", shapes: [[3, 4]], options: { axis: 0, descending: true } },
  { op: "topk", shapes: [[3, 4]], options: { axis: 1, k: 2, largest: false } },
  {
    op: "matmul",
    shapes: [
      [2, 1, 2, 3],
      [3, 4],
    ],
  },
  { op: "matmul", shapes: [[3], [3, 4]] },
  {
    op: "attention",
    shapes: [
      [4, 2],
      [4, 2],
      [4, 2],
    ],
    options: { isCausal: true },
  },
  ...[{ isCausal: true }, {}].map((options) => ({
    op: "scaledDotProductAttention",
    shapes: [
      [2, 2, 3],
      [2, 4, 3],
      [2, 4, 1],
    ],
    options,
  })),
  {
    op: "scaledDotProductAttention",
    shapes: [
      [3, 2],
      [2, 2],
      [2, 2],
      [3, 2],
    ],
    options: { isBool: true },
    whole: [undefined, undefined, undefined, 2],
  },
  ...[
    { heads: 2, isCausal: true },
    { heads: 1, dropout: 1, training: true },
  ].map((options) => ({
    op: "CrossAttention",
    shapes: [[2, 2, 2], [3, 2, 2], [6, 2], [6], [2, 2], [2]],
    options,
  })),
  ...(
    [
      ["RNN", 1],
      ["GRU", 3],
      ["LSTM", 4],
    ] as const
  ).map(([op, gates]) => ({ op, shapes: [[3, 2, 2], [2 * gates, 2], [2 * gates, 2], [2 * gates], [2 * gates]] })),
  {
    op: "RNN",
    shapes: [
      [3, 2],
      ...[2, 2, 4, 4].flatMap((width) => [
        [2, width],
        [2, 2],
      ]),
    ],
    options: { numLayers: 2, bidirectional: true, bias: false },
  },
  { op: "layerNorm", shapes: [[3, 4], [4], [4]] },
  { op: "RMSNorm", shapes: [[3, 4], [4]], options: { eps: 0.01 } },
  { op: "GroupNorm", shapes: [[2, 4, 3], [4], [4]], options: { groups: 2 } },
  { op: "BatchNorm1d", shapes: [[4, 3], [3], [3]], options: { training: true, buffers: {} } },
  {
    op: "conv2d",
    shapes: [
      [1, 2, 4, 3],
      [3, 2, 2, 2],
    ],
    options: { stride: 2, padding: 1 },
  },
  { op: "Conv1d", shapes: [[2, 2, 5], [3, 2, 2], [3]], options: { stride: 1 } },
  { op: "maxPool2d", shapes: [[1, 2, 4, 3]], options: { kernel: 2, stride: 1 } },
  { op: "avgPool2d", shapes: [[1, 2, 4, 3]], options: { kernel: 2, stride: 1 } },
  { op: "crossEntropy", shapes: [[3, 4], [3]], whole: [undefined, 4] },
  { op: "meanCrossEntropy", shapes: [[3, 4], [3]], whole: [undefined, 4] },
  { op: "interpolate", shapes: [[2, 1, 5]], options: { scaleFactor: 1.5 } },
  {
    op: "l1Loss",
    shapes: [
      [2, 3],
      [2, 3],
    ],
  },
  {
    op: "smoothL1Loss",
    shapes: [
      [2, 3],
      [2, 3],
    ],
  },
  { op: "Embedding", shapes: [[4], [3, 2]], options: { paddingIdx: 1 }, whole: [3] },
];

/** Operands in -2 .. 2 that are no kinks and all different. */
function operandsOf({ shapes, whole = [] }: Case, isTrained: boolean): Node[] {
  const random = new Random(5);
  return shapes.map((shape, i) => {
    const below = whole[i];
    const draw = () => (below === undefined ? 4 * random.uniform() - 2 : random.below(below));
    const node = new Node(shape, Float64Array.from({ length: sizeOf(shape) }, draw));
    node.isTrained = isTrained && below === undefined;
    return node;
  });
}

/** Each element weighed by another number, squared at first so that linear ops have second gradients. */
function lossOf({ op, options = {} }: Case, operands: readonly Node[]): Node {
  const result = interpretation(op)(operands, options);
  const weights = constant({ shape: result.shape, data: result.data.map((_, i) => Math.sin(i + 1)) });
  return sum(times(times(result, result), weights));
}

/** The gradient of a function of the operands beside its finite differences. */
function expectSlopes(operands: readonly Node[], f: () => Node): void {
  const trained = operands.filter(({ isTrained }) => isTrained);
  const output = f();
  gradients(output, filled([], 1), trained).forEach((gradient, i) => {
    const { data } = trained[i]!;
    const slopes = data.map((x, j) => {
      const at = (value: number) => {
        data[j] = value;
        return f().data[0]!;
      };
      const slope = (at(x + 1e-6) - at(x - 1e-6)) / 2e-6;
      data[j] = x;
      return slope;
    });
    expect(gradient?.data ?? new Float64Array(data.length)).toAgreeWith(slopes, { absolute: 1e-6, relative: 1e-6 });
  });
}

describe("gradients of the interpretation", () => {
  it.each(CASES)("$op $options", (one) => {
    const operands = operandsOf(one, true);
    expectSlopes(operands, () => lossOf(one, operands));
  });

  it.each(CASES)("$op $options: of its gradient", (one) => {
    const operands = operandsOf(one, true);
    const trained = operands.filter(({ isTrained }) => isTrained);
    expectSlopes(operands, () => {
      const loss = lossOf(one, operands);
      const found = gradients(loss, filled([], 1), trained).map((g) => times(g!, g!));
      return found
        .map((g) => sum(g))
        .reduce(
          (a, b) =>
            new Node(
              [],
              a.data.map((x) => x + b.data[0]!),
              [
                { of: a, pull: (g) => g },
                { of: b, pull: (g) => g },
              ],
            ),
        );
    });
  });
});

describe("what a gradient mentions, as PyTorch 2.13 does", () => {
  const x = () => Object.assign(new Node([1, 1, 2, 2], Float64Array.of(1, -2, 0.3, 0.7)), { isTrained: true });
  const ofGradient = (op: string, options: Options) => {
    const leaf = x();
    const result = interpretation(op)([leaf], options);
    const [first] = gradients(result, filled(result.shape, 1), [leaf]);
    return first!.requiresGrad ? gradients(first!, filled(first!.shape, 1), [leaf])[0] : null;
  };

  it.each<[string, Options]>([
    ["abs", {}],
    ["relu", {}],
    ["leakyRelu", {}],
    ["relu6", {}],
    ["hardtanh", {}],
    ["norm", { p: 1 }],
    ["norm", { p: "Infinity" }],
    ["maxPool2d", { kernel: 2, stride: 2 }],
    ["avgPool2d", { kernel: 2, stride: 2 }],
  ])("%s %o has zeros", (op, options) => expect(ofGradient(op, options)!.data).toEqual(new Float64Array(4)));

  it.each<[string, Options]>([
    ["neg", {}],
    ["clamp", { low: -1, high: 1 }],
    ["max", {}],
    ["sort", { axis: 3 }],
    ["topk", { axis: 3, k: 1 }],
    ["cumsum", { axis: 2 }],
    ["tril", { diagonal: 0 }],
    ["flip", { axis: 3 }],
  ])("%s %o has null", (op, options) => expect(ofGradient(op, options)).toBeNull());
});

it("moves nothing where a shape is empty", () => {
  expect(moved(new Node([0, 2], new Float64Array()), [2, 0], ([i, j]) => [j!, i!]).data).toHaveLength(0);
});
