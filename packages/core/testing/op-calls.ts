/** A row for every op, of which random calls are drawn: with second gradients. */
import { argumentsOf, type CallInput, resultsOf, type TorchCall, tensorsOf } from "@opt/testkit";
import * as F from "../src/functions";
import {
  adaptiveAvgPool2d,
  avgPool2d,
  concat,
  conv2d,
  convTranspose2d,
  gather,
  layerNorm,
  maxPool2d,
  unfold,
} from "../src/ops";
import type { FunctionDefinition } from "../src/ops/define-function";
import type { OpDefinition } from "../src/ops/elementwise/define-op";
import type { Tensor } from "../src/tensor/tensor";
import { sizeOf } from "../src/values/shape";
import { bool, drawnCall, list, type Row, type Shape } from "./draw";

interface UnaryOptions {
  readonly positive?: boolean;
  readonly finite?: boolean;
  readonly low?: number;
  readonly high?: number;
}

const unary =
  (code: string, run: (x: Tensor) => Tensor, { finite = false, ...domain }: UnaryOptions = {}): Row =>
  (draw) => ({ inputs: [draw.numbers(draw.shape(), domain)], code, run: (a) => run(a!), finite });

const binary =
  (code: string, run: (a: Tensor, b: Tensor) => Tensor, { finite = false, ...domain }: UnaryOptions = {}): Row =>
  (draw) => ({
    inputs: draw.shapes(2).map((shape) => draw.numbers(shape, domain)),
    code,
    run: (a, b) => run(a!, b!),
    finite,
  });

/** Along an axis, with the reduced axis kept or not. */
const reduced =
  (code: (dim: string) => string, run: (x: Tensor, axis: number, keepDim: boolean) => Tensor, least = 0): Row =>
  (draw) => {
    const shape = draw.shape(3, 0).map((extent) => Math.max(extent, least));
    const [axis, keepDim] = [draw.axis(shape), draw.flip()];
    return {
      inputs: [draw.numbers(shape)],
      code: code(`${axis}, keepdim=${bool(keepDim)}`),
      run: (x) => run(x!, axis, keepDim),
    };
  };

const along =
  (code: (dim: number) => string, run: (x: Tensor, axis: number) => Tensor | readonly Tensor[], least = 0): Row =>
  (draw) => {
    const shape = draw.shape(3, least);
    const axis = draw.axis(shape);
    return { inputs: [draw.numbers(shape)], code: code(axis), run: (x) => run(x!, axis) };
  };

const finite =
  (row: Row): Row =>
  (draw) => ({ ...row(draw), finite: true });

/** With 1 in place of what is 0, or so small that its powers overflow 16 bits on the way in PyTorch. */
const nonZero =
  (row: Row): Row =>
  (draw) => {
    const { inputs, ...drawn } = row(draw);
    const values = (given: CallInput) => Array.from(given.values, (value) => (Math.abs(value) < 1 / 32 ? 1 : value));
    return { ...drawn, inputs: inputs.map((given) => ({ ...given, values: values(given) })), finite: true };
  };

/** What `defineOp` made: rows follow from definitions. */
export const DEFINED: readonly OpDefinition[] = Object.values(F).flatMap((op) =>
  typeof op === "function" && "definition" in op && "inputs" in op.definition ? [op.definition] : [],
);

/** What `defineFunction` made. */
export const COMPOSED: readonly FunctionDefinition[] = Object.values(F).flatMap((op) =>
  typeof op === "function" && "definition" in op && "tensors" in op.definition ? [op.definition] : [],
);

const composedRows = (): Readonly<Record<string, Row>> =>
  Object.fromEntries(
    COMPOSED.map((definition): [string, Row] => {
      const { name, torch: code } = definition;
      const op = (F as unknown as Record<string, (...given: unknown[]) => object>)[name]!;
      const row: Row = (draw) => {
        const extents = new Map<string, number>();
        const extentOf = (letter: string) => {
          const known = extents.get(letter) ?? 1 + draw.int(4);
          extents.set(letter, known);
          return known;
        };
        const inputs = tensorsOf(definition, extentOf).map(({ shape, dtype, below }) =>
          dtype === undefined ? draw.numbers(shape, { special: false }) : draw.whole(shape, below, dtype),
        );
        return { inputs, code, run: (...given) => resultsOf(op(...argumentsOf(definition, given))), finite: true };
      };
      return [name, row];
    }),
  );

const definedRows = (): Readonly<Record<string, Row>> =>
  Object.fromEntries(
    DEFINED.map(({ name, inputs, torch, domain = {} }): [string, Row] => {
      const op = (F as unknown as Record<string, (...operands: Tensor[]) => Tensor>)[name]!;
      return [name, inputs === 1 ? unary(torch, op, domain) : binary(torch, op, domain)];
    }),
  );

/** By the name of ours; what has two forms has them here as two. */
export const OP_ROWS: Readonly<Record<string, Row>> = {
  neg: unary("-a", F.neg),
  abs: unary("a.abs()", F.abs),
  exp: unary("a.exp()", F.exp),
  log: unary("a.log()", F.log, { positive: true }),
  sqrt: unary("a.sqrt()", F.sqrt, { positive: true }),
  tanh: unary("a.tanh()", F.tanh),
  erf: unary("torch.erf(a)", F.erf),
  sin: unary("a.sin()", F.sin),
  cos: unary("a.cos()", F.cos),
  sigmoid: unary("a.sigmoid()", F.sigmoid),
  relu: unary("a.relu()", F.relu),
  gelu: unary("F.gelu(a)", (x) => F.gelu(x)),
  "gelu tanh": unary("F.gelu(a, approximate='tanh')", (x) => F.gelu(x, { approximate: "tanh" })),
  silu: unary("F.silu(a)", F.silu),
  leakyRelu: unary("F.leaky_relu(a, 0.2)", (x) => F.leakyRelu(x, 0.2)),
  softplus: unary("F.softplus(a, 2, 1.03)", (x) => F.softplus(x, 2, 1.03)),
  elu: unary("F.elu(a, 0.8)", (x) => F.elu(x, 0.8), { finite: true }),
  selu: unary("F.selu(a)", F.selu, { finite: true }),
  mish: unary("F.mish(a)", F.mish),
  logsigmoid: unary("F.logsigmoid(a)", F.logsigmoid),
  relu6: unary("F.relu6(a * 5)", (x) => F.relu6(x.mul(5)), { finite: true }),
  hardtanh: unary("F.hardtanh(a, -0.5, 0.75)", (x) => F.hardtanh(x, -0.5, 0.75), { finite: true }),
  hardswish: unary("F.hardswish(a * 4)", (x) => F.hardswish(x.mul(4)), { finite: true }),
  log1p: unary("a.log1p()", (x) => F.log1p(x), { positive: true }),
  expm1: unary("a.expm1()", (x) => F.expm1(x)),
  rsqrt: unary("a.rsqrt()", F.rsqrt, { positive: true }),
  square: unary("a.square()", F.square),
  round: unary("a.round()", (x) => F.round(x)),
  floor: unary("a.floor()", F.floor),
  ceil: unary("a.ceil()", F.ceil),
  sign: unary("a.sign()", F.sign),
  isnan: unary("a.isnan()", F.isnan),
  isfinite: unary("a.isfinite()", F.isfinite),
  logicalNot: unary("a.logical_not()", F.logicalNot),
  "clamp by numbers": unary("a.clamp(-0.5, 0.75)", (x) => x.clamp(-0.5, 0.75)),
  "clamp from above": unary("a.clamp(max=0.75)", (x) => x.clamp(null, 0.75)),
  "pow by 0": unary("a ** 0", (x) => x.pow(0)),
  "pow by 1": unary("a ** 1", (x) => x.pow(1)),
  "pow by 2": unary("a ** 2", (x) => x.pow(2)),
  "pow by 3": unary("a ** 3", (x) => x.pow(3)),
  "pow of a number": unary("2 ** a", (x) => F.pow<Tensor>(2, x)),
  "div by a number": unary("a / 3", (x) => x.div(3)),
  "div of a number": unary("3 / a", (x) => F.div<Tensor>(3, x), { positive: true }),
  clone: unary("a.clone()", (x) => x.clone()),
  add: binary("a + b", (a, b) => a.add(b)),
  sub: binary("a - b", (a, b) => a.sub(b)),
  mul: binary("a * b", (a, b) => a.mul(b)),
  div: binary("a / b", (a, b) => a.div(b), { positive: true }),
  pow: binary("a ** b", (a, b) => a.pow(b), { positive: true }),
  maximum: binary("torch.maximum(a, b)", (a, b) => a.maximum(b)),
  minimum: binary("torch.minimum(a, b)", (a, b) => a.minimum(b)),
  logaddexp: binary("torch.logaddexp(a, b)", F.logaddexp, { finite: true }),
  eq: binary("a == b", F.eq),
  ne: binary("a != b", F.ne),
  less: binary("a < b", (a, b) => F.less<Tensor>(a, b)),
  lt: binary("a < b", F.lt),
  le: binary("a <= b", F.le),
  gt: binary("a > b", F.gt),
  ge: binary("a >= b", F.ge),
  logicalAnd: binary("torch.logical_and(a, b)", F.logicalAnd),
  logicalOr: binary("torch.logical_or(a, b)", F.logicalOr),
  fma: (draw) => ({
    inputs: draw.shapes(3).map((shape) => draw.numbers(shape)),
    code: "a * b + c",
    run: (a, b, c) => F.fma(a!, b!, c!),
  }),
  lerp: (draw) => ({
    inputs: draw.shapes(3).map((shape) => draw.numbers(shape)),
    code: "torch.lerp(a, b, c)",
    run: (a, b, c) => F.lerp(a!, b!, c!),
  }),
  clamp: (draw) => {
    const shape = draw.shape();
    // Bounds of more axes than a have no gradient in PyTorch.
    return {
      inputs: [shape, shape.slice(1), shape.map(() => 1)].map((each) => draw.numbers(each)),
      code: "a.clamp(b, c)",
      run: (a, b, c) => a!.clamp(b!, c!),
    };
  },
  where: (draw) => {
    const [a, b, c] = draw.shapes(3) as [number[], number[], number[]];
    return {
      inputs: [draw.whole(a, 2, "bool"), draw.numbers(b), draw.numbers(c)],
      code: "torch.where(a, b, c)",
      run: (a, b, c) => F.where(a!, b!, c!),
    };
  },
  maskedFill: (draw) => {
    const shape = draw.shape();
    return {
      inputs: [draw.numbers(shape), draw.whole(shape, 2, "bool"), draw.numbers([])],
      code: "a.masked_fill(b, c)",
      run: (a, b, c) => F.maskedFill(a!, b!, c!),
    };
  },
  // At 0, PyTorch's second gradients take another side than its first.
  prelu: nonZero((draw) => {
    const shape = draw.shape(4, 2);
    return {
      inputs: [draw.numbers(shape), draw.numbers([draw.flip() ? 1 : shape[1]!])],
      code: "F.prelu(a, b)",
      run: (a, b) => F.prelu(a!, b!),
    };
  }),
  sum: reduced(
    (dim) => `a.sum(${dim})`,
    (x, axis, keep) => x.sum(axis, keep),
  ),
  "sum of all": unary("a.sum()", (x) => x.sum()),
  mean: reduced(
    (dim) => `a.mean(${dim})`,
    (x, axis, keep) => x.mean(axis, keep),
  ),
  "mean of all": unary("a.mean()", (x) => x.mean()),
  max: reduced(
    (dim) => `a.amax(${dim})`,
    (x, axis, keep) => x.max(axis, keep),
    1,
  ),
  min: reduced(
    (dim) => `a.amin(${dim})`,
    (x, axis, keep) => x.min(axis, keep),
    1,
  ),
  argmax: reduced(
    (dim) => `a.argmax(${dim})`,
    (x, axis, keep) => x.argmax(axis, keep),
    1,
  ),
  argmin: reduced(
    (dim) => `a.argmin(${dim})`,
    (x, axis, keep) => x.argmin(axis, keep),
    1,
  ),
  any: reduced((dim) => `a.any(${dim})`, F.any),
  all: reduced((dim) => `a.all(${dim})`, F.all),
  // A single 0 makes PyTorch's second gradient null, any other number zeros: products.torch.test.ts has zeros.
  prod: nonZero(reduced((dim) => `a.prod(${dim})`, F.prod)),
  "prod of all": nonZero(unary("a.prod()", (x) => F.prod(x))),
  logsumexp: finite(reduced((dim) => `torch.logsumexp(a, ${dim})`, F.logsumexp)),
  variance: finite(
    reduced(
      (dim) => `a.var(${dim}, correction=0)`,
      (x, axis, keepDim) => x.var(axis, { keepDim, correction: 0 }),
      1,
    ),
  ),
  std: finite(
    reduced(
      (dim) => `a.std(${dim}, correction=0)`,
      (x, axis, keepDim) => x.std(axis, { keepDim, correction: 0 }),
      1,
    ),
  ),
  ...Object.fromEntries(
    [0, 1, 2, 3, 0.5, -1, Infinity, -Infinity].map((p) => [
      `norm ${p}`,
      // Second gradients of these powers of 0 are NaN in PyTorch, and 0 here.
      (p === 0.5 || p === -1 || p === 2 ? nonZero : finite)(
        reduced(
          (dim) => `torch.linalg.vector_norm(a, ${String(p).replace("Infinity", "inf")}, ${dim})`,
          (x, axis, keep) => x.norm(p, axis, keep),
          1,
        ),
      ),
    ]),
  ),
  softmax: along(
    (dim) => `a.softmax(${dim})`,
    (x, axis) => x.softmax(axis),
  ),
  logSoftmax: along(
    (dim) => `a.log_softmax(${dim})`,
    (x, axis) => x.logSoftmax(axis),
  ),
  cumsum: along((dim) => `a.cumsum(${dim})`, F.cumsum),
  cumprod: finite(along((dim) => `a.cumprod(${dim})`, F.cumprod)),
  logcumsumexp: finite(along((dim) => `torch.logcumsumexp(a, ${dim})`, F.logcumsumexp)),
  sort: along(
    (dim) => `torch.sort(a, dim=${dim}, stable=True).values`,
    (x, axis) => F.sort(x, axis).values,
  ),
  argsort: along((dim) => `torch.argsort(a, dim=${dim}, stable=True)`, F.argsort),
  flip: along((dim) => `a.flip((${dim},))`, F.flip),
  unsqueeze: along((dim) => `a.unsqueeze(${dim})`, F.unsqueeze),
  squeeze: along((dim) => `a.squeeze(${dim})`, F.squeeze),
  roll: along(
    (dim) => `a.roll(2, ${dim})`,
    (x, axis) => F.roll(x, 2, axis),
    1,
  ),
  slice: along(
    (dim) => `a.narrow(${dim}, 0, a.shape[${dim}] // 2)`,
    (x, axis) => x.slice(0, Math.floor(x.shape.at(axis)! / 2), axis),
    1,
  ),
  chunk: along(
    (dim) => `a.chunk(2, ${dim})`,
    (x, axis) => F.chunk(x, 2, axis),
    1,
  ),
  split: along(
    (dim) => `a.split(2, ${dim})`,
    (x, axis) => F.split(x, 2, axis),
    1,
  ),
  topk: (draw) => {
    const shape = draw.shape(3, 0).map((extent) => Math.max(extent, 1));
    const axis = draw.axis(shape);
    const k = 1 + draw.int(shape.at(axis) ?? 1);
    // Among equals PyTorch chooses as it likes.
    const values = Array.from({ length: sizeOf(shape) }, (_, i) => ((i * 7919) % 1009) / 256 - 2);
    return {
      inputs: [{ ...draw.numbers(shape), values }],
      code: `a.topk(${k}, ${axis}).values`,
      run: (x) => F.topk(x!, k, axis).values,
    };
  },
  select: along(
    (dim) => `a.select(${dim}, -1)`,
    (x, axis) => x.select(axis, -1),
    1,
  ),
  transpose: (draw) => {
    const shape = draw.shape();
    const [first, second] = [draw.axis(shape), draw.axis(shape)];
    return {
      inputs: [draw.numbers(shape)],
      code: `a.transpose(${first}, ${second})`,
      run: (x) => x!.transpose(first, second),
    };
  },
  permute: (draw) => {
    const order = [2, 0, 1];
    return { inputs: [draw.numbers(draw.shape(3, 3))], code: `a.permute(${order})`, run: (x) => x!.permute(order) };
  },
  reshape: unary("a.reshape(-1)", (x) => x.reshape([x.size])),
  flatten: unary("a.flatten()", (x) => F.flatten(x)),
  expand: (draw) => {
    const shape = draw.shape();
    return {
      inputs: [draw.numbers(shape)],
      code: `a.expand(${[2, ...shape.map(() => -1)]})`,
      run: (x) => x!.expand([2, ...shape.map(() => -1)]),
    };
  },
  repeat: (draw) => {
    const shape = draw.shape();
    const repeats = [2, ...shape.map(() => draw.int(3))];
    return { inputs: [draw.numbers(shape)], code: `a.repeat(${list(repeats)})`, run: (x) => F.repeat(x!, repeats) };
  },
  concat: (draw) => {
    const shape = draw.shape(3, 1);
    const axis = draw.axis(shape);
    return {
      inputs: [draw.numbers(shape), draw.numbers(shape)],
      code: `torch.cat([a, b, a], ${axis})`,
      run: (a, b) => concat([a!, b!, a!], axis),
    };
  },
  stack: (draw) => {
    const shape = draw.shape();
    const axis = draw.int(shape.length + 1);
    return {
      inputs: [draw.numbers(shape), draw.numbers(shape)],
      code: `torch.stack([a, b], ${axis})`,
      run: (a, b) => F.stack([a!, b!], axis),
    };
  },
  tril: (draw) => ({ inputs: [draw.numbers(draw.shape(3, 2))], code: "a.tril(-1)", run: (x) => F.tril(x!, -1) }),
  triu: (draw) => ({ inputs: [draw.numbers(draw.shape(3, 2))], code: "a.triu(1)", run: (x) => F.triu(x!, 1) }),
  pad: (draw) => ({
    inputs: [draw.numbers(draw.shape(3, 2))],
    code: "F.pad(a, (1, 2, 0, 1), value=3)",
    run: (x) => F.pad(x!, [1, 2, 0, 1], { value: 3 }),
  }),
  ...Object.fromEntries(
    (["reflect", "replicate", "circular"] as const).map((mode): [string, Row] => [
      `pad ${mode}`,
      (draw) => ({
        inputs: [draw.numbers([1 + draw.int(2), 2, 3 + draw.int(3)])],
        code: `F.pad(a, (1, 2), mode="${mode}")`,
        run: (x) => F.pad(x!, [1, 2], { mode }),
      }),
    ]),
  ),
  gatherAlong: (draw) => {
    const shape = draw.shape().map((extent) => Math.max(extent, 1));
    const axis = draw.axis(shape);
    return {
      inputs: [draw.numbers(shape), draw.whole(shape, shape.at(axis) ?? 1)],
      code: `a.gather(${axis}, b.long())`,
      run: (a, b) => F.gatherAlong(a!, b!, axis),
    };
  },
  scatterAdd: (draw) => {
    const shape = draw.shape().map((extent) => Math.max(extent, 1));
    const axis = draw.axis(shape);
    return {
      inputs: [draw.numbers(shape), draw.whole(shape, shape.at(axis) ?? 1), draw.numbers(shape)],
      code: `a.scatter_add(${axis}, b.long(), c)`,
      run: (a, b, c) => F.scatterAdd(a!, axis, b!, c!),
    };
  },
  gather: (draw) => ({
    inputs: [draw.numbers([3, 2]), draw.whole(draw.shape(2), 3)],
    code: "a[b.long()]",
    run: (a, b) => gather(a!, b!),
  }),
  matmul: (draw) => {
    const [m, k, n] = [draw.int(4), 1 + draw.int(4), 1 + draw.int(4)] as const;
    const batch = draw.shape(1);
    return {
      inputs: [draw.numbers([...batch, m, k], { special: false }), draw.numbers([k, n], { special: false })],
      code: "a @ b",
      run: (a, b) => a!.matmul(b!),
    };
  },
  "matmul of vectors": (draw) => {
    const length = draw.int(4);
    return {
      inputs: [draw.numbers([length], { special: false }), draw.numbers([length], { special: false })],
      code: "a @ b",
      run: (a, b) => a!.matmul(b!),
    };
  },
  einsum: (draw) => ({
    inputs: [draw.numbers([2, 3, 2], { special: false }), draw.numbers([4, 2, 2], { special: false })],
    code: 'torch.einsum("bik,jbk->ij", a, b)',
    run: (a, b) => F.einsum("bik,jbk->ij", a!, b!),
  }),
  layerNorm: (draw) => {
    // Of 16 bits PyTorch rounds what then cancels.
    const width = 2 + draw.int(3);
    const isWide = draw.dtype === "f64" || draw.dtype === "f32";
    const numbers = (shape: Shape) => draw.numbers(shape, { special: false, requiresGrad: isWide });
    return {
      inputs: [numbers([...draw.shape(2), width]), numbers([width]), numbers([width])],
      code: `F.layer_norm(a, (${width},), b, c)`,
      run: (x, w, b) => layerNorm(x!, w!, b!),
    };
  },
  maxPool2d: (draw) => ({
    inputs: [draw.numbers([1 + draw.int(2), 2, 4 + draw.int(2), 4], { special: false })],
    code: "F.max_pool2d(a, (3, 2), (2, 1), 1)",
    run: (x) => maxPool2d(x!, [3, 2], { stride: [2, 1], padding: 1 }),
  }),
  avgPool2d: (draw) => ({
    inputs: [draw.numbers([1 + draw.int(2), 2, 4 + draw.int(2), 4], { special: false })],
    code: "F.avg_pool2d(a, 2, 1, 1)",
    run: (x) => avgPool2d(x!, 2, { stride: 1, padding: 1 }),
  }),
  adaptiveAvgPool2d: (draw) => {
    const size = 1 + draw.int(3);
    return {
      inputs: [draw.numbers([1, 2, 5, 4], { special: false })],
      code: `F.adaptive_avg_pool2d(a, ${size})`,
      run: (x) => adaptiveAvgPool2d(x!, size),
    };
  },
  unfold: (draw) => ({
    inputs: [draw.numbers([1, 2, 4, 3], { special: false })],
    code: "F.unfold(a, (2, 1), padding=(1, 0), stride=2)",
    run: (x) => unfold(x!, [2, 1], { padding: [1, 0], stride: 2 }),
  }),
  conv2d: (draw) => ({
    inputs: [[2, 2, 4, 5], [3, 2, 2, 3], [3]].map((shape) => draw.numbers(shape, { special: false })),
    code: "F.conv2d(a, b, c, padding=1)",
    run: (x, w, b) => conv2d(x!, w!, b!, { padding: 1 }),
  }),
  convTranspose2d: (draw) => ({
    inputs: [[2, 4, 2, 3], [4, 3, 2, 2], [3]].map((shape) => draw.numbers(shape, { special: false })),
    code: "F.conv_transpose2d(a, b, c, stride=2)",
    run: (x, w, b) => convTranspose2d(x!, w!, b!, { stride: 2 }),
  }),
  ...definedRows(),
  ...composedRows(),
};

/** `count` calls, of each op as many. The same seed gives the same calls. */
export function opCalls(seed: number, count: number): TorchCall[] {
  const names = Object.keys(OP_ROWS);
  return Array.from({ length: count }, (_, i) => {
    const name = names[i % names.length]!;
    return drawnCall(i, name, OP_ROWS[name]!, seed * 65_537 + i);
  });
}
