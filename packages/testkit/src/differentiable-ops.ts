/** Every differentiable op on small inputs: what the tests of gradients, of memory and of dropped tapes go through. */
import * as F from "@opt/core";
import {
  concat,
  conv2d,
  crossEntropyRows,
  Generator,
  gather,
  layerNorm,
  maxPool2d,
  type Shape,
  type Tensor,
  tensor,
  unfold,
} from "@opt/core";
import { argumentsOf, type Definition, definitionsIn, operandsOf, resultsOf } from "./definition-calls";
import { DIFFERENTIABLE_ALGEBRA } from "./differentiable-algebra";
import type { OpCase } from "./op-case";

/** Seeded float64 inputs of a case, as plain arrays. */
export function inputsOf({ shapes, domain }: OpCase): { values: Float64Array; shape: Shape }[] {
  const generator = new Generator(11);
  return shapes.map((shape) => {
    const size = shape.reduce((a, b) => a * b, 1);
    const order = generator.permutation(size);
    const values = Float64Array.from(order, (place) => {
      const spread = (place + 0.25 + generator.nextFloat() / 2) / size;
      return domain === "positive" ? 0.5 + 2 * spread : 3 * spread - 1.5 + (spread > 0.5 ? 0.2 : -0.2);
    });
    return { values, shape };
  });
}

const BINARY: [string, (a: Tensor | number, b: Tensor | number) => Tensor][] = [
  ["add", (a, b) => F.add<Tensor>(a, b)],
  ["sub", (a, b) => F.sub<Tensor>(a, b)],
  ["mul", (a, b) => F.mul<Tensor>(a, b)],
  ["div", (a, b) => F.div<Tensor>(a, b)],
  ["pow", (a, b) => F.pow<Tensor>(a, b)],
  ["maximum", (a, b) => F.maximum<Tensor>(a, b)],
  ["minimum", (a, b) => F.minimum<Tensor>(a, b)],
];

/** The ways in which two shapes meet. */
const BROADCASTS: [Shape, Shape][] = [
  [
    [2, 3],
    [2, 3],
  ],
  [[2, 3], []],
  [[], [2, 3]],
  [[2, 3], [3]],
  [[3], [2, 3]],
  [
    [2, 1],
    [1, 3],
  ],
  [
    [2, 3, 2],
    [3, 1],
  ],
  [
    [1, 3, 1],
    [2, 1, 2],
  ],
  [[1], [1, 1]],
];

const AXES: (number | readonly number[] | undefined)[] = [undefined, 0, 1, -1, [0, 1], [0, 2], [1, 2], [2, 0, 1], []];

const labels = ({ device }: Tensor) => tensor([2, 0, -100], { dtype: "i32", device });
const rows = ({ device }: Tensor) =>
  tensor(
    [
      [2, 0],
      [2, 1],
    ],
    { dtype: "i32", device },
  );

/** Of three states behind the border; only the last may be reached past another one. */
function alongPaths(scores: Tensor): Tensor {
  const { dtype, device } = scores;
  const computed = dtype === "f64" ? "f64" : "f32";
  const column = (values: readonly number[]) =>
    tensor(values.map((value) => [value, value]))
      .to(computed)
      .to(device);
  return F.tidy(() => {
    const [begin, skips] = [column([-1e30, 0, 0, 0]), column([-1e30, -1e30, -1e30, 0])];
    const padded = F.pad(scores.to(computed), [0, 0, 1, 0], { value: -1e30 });
    return F.pathSums(begin, padded, skips).slice(1, 4, 1).to(dtype);
  });
}

type Sequence = [inputs: Tensor, weight: Tensor, bias: Tensor, hidden: Tensor, cell: Tensor];

function alongSequence(operands: Sequence, which: "results" | "cell", reverse: boolean): Tensor {
  return F.tidy(() => {
    const fused = F.fusedLstm(...operands, { reverse });
    if (fused !== null) return fused[which];
    const [inputs, weight, bias, ...begin] = operands;
    let [h, c] = begin as [Tensor, Tensor];
    const places = F.split(inputs, 1).map((place) => place.squeeze(0));
    const results = (reverse ? places.toReversed() : places).map((place) => {
      const z = place.add(bias).add(h.matmul(weight, { transposeB: true }));
      const [i, f, g, o] = F.split(z, h.shape[1]!, 1) as [Tensor, Tensor, Tensor, Tensor];
      c = f.sigmoid().mul(c).add(i.sigmoid().mul(g.tanh()));
      h = o.sigmoid().mul(c.tanh());
      return h;
    });
    return which === "cell" ? c : F.stack(reverse ? results.toReversed() : results);
  });
}

/** By one kernel, or op by op. */
function normalized(x: Tensor, weight: Tensor, bias: Tensor): Tensor {
  return F.tidy(() => {
    const fused = F.fusedBatchNorm(x, weight, bias, 1e-5);
    if (fused !== null) return fused.output;
    const centered = x.sub(x.mean([0, 2], true));
    const rstd = centered.pow(2).mean([0, 2], true).add(1e-5).pow(-0.5);
    return centered.mul(rstd).mul(weight.unsqueeze(1)).add(bias.unsqueeze(1));
  });
}

/** By one kernel, or op by op: of four channels, two and two. */
function normalizedGroups(x: Tensor, weight: Tensor, bias: Tensor): Tensor {
  return F.tidy(() => {
    const fused = F.fusedGroupNorm(x, weight, bias, 2, 1e-5);
    if (fused !== null) return fused;
    const rows = x.reshape([x.shape[0]!, 2, -1]);
    const centered = rows.sub(rows.mean(2, true));
    const rstd = centered.pow(2).mean(2, true).add(1e-5).pow(-0.5);
    return centered
      .mul(rstd)
      .reshape([...x.shape])
      .mul(weight.unsqueeze(1))
      .add(bias.unsqueeze(1));
  });
}

/** By one kernel, or op by op on devices that do not have it. */
function attended(q: Tensor, k: Tensor, v: Tensor, isCausal: boolean): Tensor {
  const scale = 0.7;
  const fused = F.fusedAttention(q, k, v, { scale, isCausal });
  if (fused !== null) return fused;
  return F.tidy(() => {
    const scores = q.mul(scale).matmul(k, { transposeB: true });
    const seen = F.tril(F.ones(scores.shape.slice(-2), { dtype: "i32", device: q.device })).ne(0);
    return (isCausal ? F.where(seen, scores, Number.NEGATIVE_INFINITY) : scores).softmax(-1).matmul(v);
  });
}

const EXTENTS: Readonly<Record<string, number>> = { n: 2, m: 3, k: 4, l: 2, p: 2, q: 1 };
const EXPORTS = F as unknown as Readonly<Record<string, (...given: unknown[]) => object>>;

/** What a definition gives: null where no gradient flows. */
function caseOf(definition: Definition): OpCase | null {
  const { name, domain: { positive = false, low = -1.5, high = 1.5 } = {} } = definition;
  if ("isFlat" in definition && definition.isFlat) return null;
  const operands = operandsOf(definition);
  const extentOf = (letter: string) => EXTENTS[letter] ?? Number(letter);
  const shapes = operands.map(({ any, letters }, i) => [
    ...(any === "none" || letters !== "" ? [] : [[2, 3], [3], [2, 1]][i]!),
    ...[...letters].map(extentOf),
  ]);
  const moved = (x: Tensor) =>
    positive
      ? x
      : x
          .add(1.7)
          .mul((high - low) / 3.4)
          .add(low);
  const run = (...given: Tensor[]) =>
    F.tidy(() => {
      const { device } = given[0]!;
      const numbers = given.map(moved);
      const all = operands.map(({ kind, below }, i) => {
        if (kind === "numbers") return numbers.shift()!;
        const size = shapes[i]!.reduce((a, b) => a * b, 1);
        const most = kind === "mask" ? 2 : extentOf(below);
        const values = Array.from({ length: size }, (_, place) => (place * place + 1) % most);
        return tensor(values, { shape: shapes[i]!, dtype: kind === "mask" ? "bool" : "i32", device });
      });
      const parts = resultsOf(EXPORTS[name]!(...argumentsOf(definition, all, { axis: 1, flag: true })));
      const ofFloats = parts.filter(({ dtype }) => !["i32", "bool"].includes(dtype));
      return ofFloats.length === 0 ? parts[0]! : ofFloats.reduce((product, part) => product.mul(part));
    });
  const own = shapes.filter((_, i) => operands[i]!.kind === "numbers");
  const trial = own.map((shape) => F.ones(shape, { dtype: "f64", requiresGrad: true }));
  if (trial.length === 0 || !run(...trial).requiresGrad) return null;
  return { name, shapes: own, ...(positive && { domain: "positive" as const }), run };
}

/** Of all definitions, but those of which there are cases below. */
const defined = (others: readonly OpCase[]): OpCase[] => {
  const names = new Set(others.map(({ name }) => name));
  const cases = [...definitionsIn(F).values()].filter(({ name }) => !names.has(name)).map(caseOf);
  return cases.filter((each) => each !== null);
};

const CASES: readonly OpCase[] = [
  ...BINARY.flatMap(([name, run]) => [
    ...BROADCASTS.map(
      (shapes): OpCase => ({
        name: `${name} [${shapes[0]}] [${shapes[1]}]`,
        shapes,
        domain: "positive",
        run: (a, b) => run(a!, b!),
      }),
    ),
    { name: `${name} by a number`, shapes: [[2, 3]], domain: "positive", run: (a) => run(a!, 1.3) } satisfies OpCase,
    { name: `a number ${name}`, shapes: [[2, 3]], domain: "positive", run: (a) => run(1.3, a!) } satisfies OpCase,
  ]),
  { name: "pow by 0", shapes: [[3]], run: (x) => x!.pow(0) },
  { name: "pow by 3 of negatives", shapes: [[4]], run: (x) => x!.pow(3) },
  { name: "fma", shapes: [[2, 3], [3], [2, 1]], run: (a, b, c) => F.fma(a!, b!, c!) },
  { name: "fma with numbers", shapes: [[3]], run: (a) => F.fma<Tensor>(2, a!, 0.5) },
  { name: "where of less", shapes: [[2, 3], [3]], run: (a, b) => F.where(F.less(a!, 0), a!.mul(2), b!) },
  { name: "where between numbers and tensors", shapes: [[4]], run: (a) => F.where(F.less(a!, 0.1), 1, a!) },
  ...AXES.flatMap((axis) =>
    (["sum", "mean", "max"] as const).flatMap((op) =>
      [false, true].map(
        (keepDim): OpCase => ({
          name: `${op} over ${JSON.stringify(axis) ?? "all"}${keepDim ? ", kept" : ""}`,
          shapes: [[2, 3, 4]],
          run: (x) => x![op](axis, keepDim),
        }),
      ),
    ),
  ),
  { name: "sum of a scalar", shapes: [[]], run: (x) => x!.sum() },
  ...[false, true].flatMap((transposeA) =>
    [false, true].flatMap((transposeB) =>
      (
        [
          ["", [], []],
          ["batched ", [2], [2]],
          ["left batched ", [2, 2], []],
          ["right batched ", [], [3]],
          ["batches of 1 ", [1], [3]],
          ["broadcast ", [2, 1], [3]],
        ] as const
      ).map(
        ([kind, batchA, batchB]): OpCase => ({
          name: `matmul ${kind}${transposeA ? "t" : "n"}${transposeB ? "t" : "n"}`,
          shapes: [
            [...batchA, ...(transposeA ? [3, 2] : [2, 3])],
            [...batchB, ...(transposeB ? [4, 3] : [3, 4])],
          ],
          run: (a, b) => a!.matmul(b!, { transposeA, transposeB }),
        }),
      ),
    ),
  ),
  { name: "matmul of vectors", shapes: [[3], [3]], run: (a, b) => a!.matmul(b!) },
  { name: "matmul matrix vector", shapes: [[2, 3], [3]], run: (a, b) => a!.matmul(b!) },
  { name: "matmul vector matrices", shapes: [[3], [2, 3, 2]], run: (a, b) => a!.matmul(b!) },
  { name: "matmul with itself", shapes: [[3, 3]], run: (a) => a!.matmul(a!) },
  { name: "reshape", shapes: [[2, 6]], run: (x) => x!.reshape([3, -1]) },
  { name: "reshape to the same", shapes: [[2, 3]], run: (x) => x!.reshape([2, 3]).mul(x!) },
  { name: "transpose", shapes: [[2, 3, 4]], run: (x) => x!.transpose(0, -1) },
  { name: "permute", shapes: [[2, 3, 4]], run: (x) => x!.permute([2, 0, 1]) },
  { name: "slice of rows", shapes: [[5, 2]], run: (x) => x!.slice(1, -1) },
  { name: "slice of columns", shapes: [[3, 5]], run: (x) => x!.slice(2, 4, 1) },
  { name: "slice of nothing", shapes: [[3, 5]], run: (x) => x!.slice(2, 2) },
  {
    name: "concat of rows",
    shapes: [
      [1, 3],
      [2, 3],
    ],
    run: (a, b) => concat([a!, b!]),
  },
  {
    name: "concat of columns, one twice",
    shapes: [
      [2, 1],
      [2, 3],
    ],
    run: (a, b) => concat([a!, b!, a!], -1),
  },
  { name: "clone", shapes: [[3]], run: (x) => x!.clone() },
  ...AXES.flatMap((axis) =>
    (["min", "var", "std"] as const).map(
      (op): OpCase => ({
        name: `${op} over ${JSON.stringify(axis) ?? "all"}`,
        shapes: [[3, 2, 4]],
        // The variance of one is NaN.
        run: (x) =>
          op === "min" ? x!.min(axis) : x![op](axis, { keepDim: true, correction: axis?.toString() === "" ? 0 : 1 }),
      }),
    ),
  ).filter(({ name }) => name !== "std over []"),
  ...[1, 2, 3, 0.5, -1, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY].map(
    (p): OpCase => ({ name: `norm ${p}`, shapes: [[2, 3]], run: (x) => x!.norm(p, 1) }),
  ),
  { name: "norm of all", shapes: [[2, 3]], run: (x) => x!.norm() },
  {
    name: "clamp",
    shapes: [[2, 3], [3], [2, 1]],
    run: (x, low, high) => F.tidy(() => x!.clamp(low!.sub(1), high!.add(1))),
  },
  {
    name: "clamp where bounds cross",
    shapes: [[2, 3], [3], [3]],
    run: (x, low, high) => F.tidy(() => x!.clamp(low!.add(1), high!)),
  },
  { name: "clamp by numbers", shapes: [[2, 3]], run: (x) => x!.clamp(-0.31, 0.57) },
  { name: "clamp from above", shapes: [[2, 3], [3]], run: (x, high) => x!.clamp(null, high!) },
  { name: "where", shapes: [[2, 3], [3]], run: (a, b) => F.tidy(() => F.where(a!.gt(0), a!, b!)) },
  { name: "maskedFill", shapes: [[2, 3], []], run: (x, value) => F.tidy(() => F.maskedFill(x!, x!.gt(0), value!)) },
  { name: "squeeze", shapes: [[2, 1, 3]], run: (x) => x!.squeeze() },
  { name: "unsqueeze", shapes: [[2, 3]], run: (x) => x!.unsqueeze(-2) },
  { name: "expand", shapes: [[3, 1]], run: (x) => x!.expand([2, -1, 4]) },
  {
    name: "stack",
    shapes: [
      [2, 3],
      [2, 3],
    ],
    run: (a, b) => F.stack([a!, b!, a!], 1),
  },
  { name: "split", shapes: [[2, 5]], run: (x) => F.tidy(() => F.split(x!, 2, 1)[2]!.mul(F.split(x!, [1, 4], 1)[0]!)) },
  { name: "pad", shapes: [[2, 3]], run: (x) => F.pad(x!, [1, -1, 0, 2], { value: 3 }) },
  { name: "prelu", shapes: [[2, 3], [3]], run: (x, slope) => F.prelu(x!, slope!) },
  { name: "flip", shapes: [[2, 3, 2]], run: (x) => F.flip(x!, [0, 2]) },
  { name: "roll", shapes: [[3, 4]], run: (x) => F.roll(x!, [1, -2], [0, 1]) },
  { name: "repeat", shapes: [[2, 3]], run: (x) => F.repeat(x!, [2, 1, 3]) },
  { name: "select", shapes: [[2, 3, 2]], run: (x) => F.select(x!, 1, -1) },
  { name: "chunk", shapes: [[2, 5]], run: (x) => F.tidy(() => F.chunk(x!, 3, 1)[2]!.clone()) },
  { name: "sort", shapes: [[3, 4]], run: (x) => F.tidy(() => F.sort(x!, 0, { descending: true }).values) },
  {
    name: "scatter",
    shapes: [
      [3, 2],
      [2, 2],
    ],
    run: (x, source) => F.tidy(() => F.scatter(x!, 0, rows(x!), source!)),
  },
  {
    name: "at",
    shapes: [[3, 4]],
    run: (x) => F.tidy(() => F.at(x!, rows(x!).reshape([-1]), [3, null])),
  },
  {
    name: "assign",
    shapes: [
      [3, 4],
      [2, 1],
    ],
    run: (x, value) => {
      const y = F.mul(x!, 2);
      y.assign(
        [
          [1, null],
          [0, null, 3],
        ],
        value!,
      );
      return y;
    },
  },
  {
    name: "indexPut",
    shapes: [
      [3, 2],
      [1, 2],
    ],
    run: (x, value) => F.tidy(() => F.indexPut(x!, [rows(x!).reshape([-1])], value!, { accumulate: true })),
  },
  {
    name: "scatterAdd",
    shapes: [
      [3, 2],
      [2, 2],
    ],
    run: (x, source) => F.tidy(() => F.scatterAdd(x!, 0, rows(x!), source!)),
  },
  {
    name: "indexAdd",
    shapes: [
      [3, 2],
      [4, 2],
    ],
    run: (x, source) => F.tidy(() => F.indexAdd(x!, 0, rows(x!).reshape([4]), source!, { alpha: 0.7 })),
  },
  { name: "tril", shapes: [[2, 3, 3]], run: (x) => F.tril(x!, 1) },
  { name: "triu", shapes: [[3, 4]], run: (x) => F.triu(x!, -1) },
  ...[0, 1, -1].map(
    (axis): OpCase => ({ name: `cumsum along ${axis}`, shapes: [[2, 5, 3]], run: (x) => F.cumsum(x!, axis) }),
  ),
  { name: "topk", shapes: [[3, 5]], run: (x) => F.tidy(() => F.topk(x!, 2).values) },
  {
    name: "the smallest by topk",
    shapes: [[5, 3]],
    run: (x) => F.tidy(() => F.topk(x!, 2, 0, { largest: false }).values),
  },
  { name: "gatherAlong", shapes: [[3, 2]], run: (x) => F.gatherAlong(x!, rows(x!), 0) },
  ...[0, 1, -1].flatMap((axis) => [
    { name: `softmax along ${axis}`, shapes: [[2, 3, 4]], run: (x: Tensor) => x.softmax(axis) } as OpCase,
    { name: `logSoftmax along ${axis}`, shapes: [[2, 3, 4]], run: (x: Tensor) => x.logSoftmax(axis) } as OpCase,
  ]),
  { name: "layerNorm", shapes: [[3, 4], [4], [4]], run: (x, w, b) => layerNorm(x!, w!, b!) },
  {
    name: "layerNorm over two axes, without bias",
    shapes: [
      [2, 2, 3],
      [2, 3],
    ],
    run: (x, w) => layerNorm(x!, w!),
  },
  ...[false, true].map(
    (isCausal): OpCase => ({
      name: `fusedAttention${isCausal ? ", causal" : ""}`,
      shapes: [
        [2, 4, 3],
        [2, 5, 3],
        [2, 5, 2],
      ],
      run: (q, k, v) => attended(q!, k!, v!, isCausal),
    }),
  ),
  { name: "fusedBatchNorm", shapes: [[3, 2, 2], [2], [2]], run: (x, w, b) => normalized(x!, w!, b!) },
  { name: "fusedGroupNorm", shapes: [[3, 4, 2], [4], [4]], run: (x, w, b) => normalizedGroups(x!, w!, b!) },
  ...[false, true].flatMap((reverse) =>
    (["results", "cell"] as const).map(
      (which): OpCase => ({
        name: `fusedLstm, ${which}${reverse ? " in reverse" : ""}`,
        shapes: [[3, 2, 8], [8, 2], [8], [2, 2], [2, 2]],
        run: (...operands) => alongSequence(operands as Sequence, which, reverse),
      }),
    ),
  ),
  { name: "pathSums", shapes: [[3, 3, 2]], run: (x) => alongPaths(x!) },
  { name: "crossEntropyRows", shapes: [[3, 4]], run: (x) => crossEntropyRows(x!, labels(x!)) },
  { name: "gather", shapes: [[3, 2]], run: (table) => gather(table!, rows(table!)) },
  { name: "unfold", shapes: [[1, 2, 4, 3]], run: (x) => unfold(x!, [2, 1], { padding: [1, 0], stride: 2 }) },
  { name: "conv2d", shapes: [[2, 2, 4, 5], [3, 2, 2, 3], [3]], run: (x, w, b) => conv2d(x!, w!, b!) },
  {
    name: "conv2d with stride, padding and dilation",
    shapes: [
      [1, 2, 5, 6],
      [2, 2, 3, 2],
    ],
    run: (x, w) => conv2d(x!, w!, null, { stride: [2, 1], padding: [1, 2], dilation: [1, 2] }),
  },
  {
    name: "conv2d in groups",
    shapes: [[2, 4, 3, 3], [6, 2, 2, 2], [6]],
    run: (x, w, b) => conv2d(x!, w!, b!, { groups: 2 }),
  },
  {
    name: "convTranspose2d",
    shapes: [[2, 4, 2, 3], [4, 3, 2, 2], [6]],
    run: (x, w, b) => F.convTranspose2d(x!, w!, b!, { stride: 2, padding: [1, 0], outputPadding: [1, 0], groups: 2 }),
  },
  { name: "avgPool2d", shapes: [[1, 2, 4, 6]], run: (x) => F.avgPool2d(x!, 2) },
  {
    name: "avgPool2d without its padding",
    shapes: [[1, 1, 4, 5]],
    run: (x) => F.avgPool2d(x!, [3, 2], { stride: [2, 1], padding: 1, countIncludePad: false }),
  },
  { name: "adaptiveAvgPool2d", shapes: [[1, 2, 5, 4]], run: (x) => F.adaptiveAvgPool2d(x!, [3, null]) },
  { name: "maxPool2d", shapes: [[1, 2, 4, 6]], run: (x) => maxPool2d(x!, 2) },
  {
    name: "maxPool2d with overlap and padding",
    shapes: [[2, 1, 5, 4]],
    run: (x) => maxPool2d(x!, [3, 2], { stride: [2, 1], padding: [1, 1] }),
  },
  ...DIFFERENTIABLE_ALGEBRA,
];

export const DIFFERENTIABLE_OPS: readonly OpCase[] = [...CASES, ...defined(CASES)];
