/** A row for every op, of which random calls are drawn: with second gradients. */
import {
  argumentsOf,
  type CallInput,
  type Definition,
  definitionsIn,
  expressionOf,
  type Operand,
  operandsOf,
  resultsOf,
  type TorchCall,
} from "@opt/testkit";
import type { Domain, Tensor } from "../src/index";
import * as F from "../src/index";
import { sizeOf } from "../src/values/shape";
import { bool, type Draw, drawnCall, list, type Row, type Shape } from "./draw";

const unary =
  (code: string, run: (x: Tensor) => Tensor, domain: Domain = {}): Row =>
  (draw) => ({ inputs: [draw.numbers(draw.shape(), domain)], code, run: (a) => run(a!) });

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

/** Every op that has a definition, by its name: rows follow. */
export const DEFINITIONS = definitionsIn(F);

type Op = (...given: unknown[]) => object;

function rowOf(definition: Definition): Row {
  const operands = operandsOf(definition);
  const { domain = {}, name } = definition;
  const op = (F as unknown as Readonly<Record<string, Op>>)[name]!;
  const [first] = operands;
  const isSpecial = first!.any !== "none";
  const { finite = !isSpecial, nonZero: isNonZero = false, ...numbers } = domain;
  const row: Row = (draw) => {
    const shapes = drawnShapes(draw, operands);
    const inputs = operands.map(({ kind, below, letters }, i) => {
      const shape = shapes.of[i]!;
      if (kind === "mask") return draw.whole(shape, 2, "bool");
      if (kind === "indices") return draw.whole(shape, shapes.extentOf(below));
      return draw.numbers(shape, isSpecial && letters === "" ? numbers : { ...numbers, special: false });
    });
    const chosen = { axis: draw.axis(shapes.of[0]!), flag: draw.flip() };
    const code = expressionOf(definition, chosen);
    return { inputs, code, run: (...given) => resultsOf(op(...argumentsOf(definition, given, chosen))), finite };
  };
  return isNonZero ? nonZero(row) : row;
}

/** Where all are of any shape, shapes that broadcast; else letters, behind the same axes. */
function drawnShapes(draw: Draw, operands: readonly Operand[]) {
  const extents = new Map<string, number>();
  const extentOf = (letter: string) => {
    const known = extents.get(letter) ?? (/\d/.test(letter) ? Number(letter) : 1 + draw.int(4));
    extents.set(letter, known);
    return known;
  };
  const isAlone = operands.length === 1 || operands.some(({ letters, any }) => letters !== "" || any === "none");
  const before = isAlone ? draw.shape(operands[0]!.letters === "" ? 3 : 1) : [];
  const broadcast = isAlone ? [] : draw.shapes(operands.length);
  const of = operands.map(({ any, letters }, i) => {
    const axes = any === "none" ? [] : (broadcast[i] ?? before);
    return [...(any === "full" ? axes.map((extent) => Math.max(extent, 1)) : axes), ...[...letters].map(extentOf)];
  });
  return { of, extentOf };
}

/** By the name of ours: what a definition gives, and calls with other arguments. What has two forms has them here as two. */
export const OP_ROWS: Readonly<Record<string, Row>> = {
  ...Object.fromEntries([...DEFINITIONS].map(([name, definition]) => [name, rowOf(definition)])),
  "gelu tanh": unary("F.gelu(a, approximate='tanh')", (x) => F.gelu(x, { approximate: "tanh" })),
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
  clamp: (draw) => {
    const shape = draw.shape();
    // Bounds of more axes than a have no gradient in PyTorch.
    return {
      inputs: [shape, shape.slice(1), shape.map(() => 1)].map((each) => draw.numbers(each)),
      code: "a.clamp(b, c)",
      run: (a, b, c) => a!.clamp(b!, c!),
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
  "sum of all": unary("a.sum()", (x) => x.sum()),
  "mean of all": unary("a.mean()", (x) => x.mean()),
  // A single 0 makes PyTorch's second gradient null, any other number zeros: products.torch.test.ts has zeros.
  "prod of all": nonZero(unary("a.prod()", (x) => F.prod(x))),
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
  transpose: (draw) => {
    const shape = draw.shape();
    const [first, second] = [draw.axis(shape), draw.axis(shape)];
    return {
      inputs: [draw.numbers(shape)],
      code: `a.transpose(${first}, ${second})`,
      run: (x) => x!.transpose(first, second),
    };
  },
  reshape: unary("a.reshape(-1)", (x) => x.reshape([x.size])),
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
      run: (a, b) => F.concat([a!, b!, a!], axis),
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
  layerNorm: (draw) => {
    // Of 16 bits PyTorch rounds what then cancels.
    const width = 2 + draw.int(3);
    const isWide = draw.dtype === "f64" || draw.dtype === "f32";
    const numbers = (shape: Shape) => draw.numbers(shape, { special: false, requiresGrad: isWide });
    return {
      inputs: [numbers([...draw.shape(2), width]), numbers([width]), numbers([width])],
      code: `F.layer_norm(a, (${width},), b, c)`,
      run: (x, w, b) => F.layerNorm(x!, w!, b!),
    };
  },
  maxPool2d: (draw) => ({
    inputs: [draw.numbers([1 + draw.int(2), 2, 4 + draw.int(2), 4], { special: false })],
    code: "F.max_pool2d(a, (3, 2), (2, 1), 1)",
    run: (x) => F.maxPool2d(x!, [3, 2], { stride: [2, 1], padding: 1 }),
  }),
  avgPool2d: (draw) => ({
    inputs: [draw.numbers([1 + draw.int(2), 2, 4 + draw.int(2), 4], { special: false })],
    code: "F.avg_pool2d(a, 2, 1, 1)",
    run: (x) => F.avgPool2d(x!, 2, { stride: 1, padding: 1 }),
  }),
  adaptiveAvgPool2d: (draw) => {
    const size = 1 + draw.int(3);
    return {
      inputs: [draw.numbers([1, 2, 5, 4], { special: false })],
      code: `F.adaptive_avg_pool2d(a, ${size})`,
      run: (x) => F.adaptiveAvgPool2d(x!, size),
    };
  },
  unfold: (draw) => ({
    inputs: [draw.numbers([1, 2, 4, 3], { special: false })],
    code: "F.unfold(a, (2, 1), padding=(1, 0), stride=2)",
    run: (x) => F.unfold(x!, [2, 1], { padding: [1, 0], stride: 2 }),
  }),
  conv2d: (draw) => ({
    inputs: [[2, 2, 4, 5], [3, 2, 2, 3], [3]].map((shape) => draw.numbers(shape, { special: false })),
    code: "F.conv2d(a, b, c, padding=1)",
    run: (x, w, b) => F.conv2d(x!, w!, b!, { padding: 1 }),
  }),
  convTranspose2d: (draw) => ({
    inputs: [[2, 4, 2, 3], [4, 3, 2, 2], [3]].map((shape) => draw.numbers(shape, { special: false })),
    code: "F.conv_transpose2d(a, b, c, stride=2)",
    run: (x, w, b) => F.convTranspose2d(x!, w!, b!, { stride: 2 }),
  }),
};

/** `count` calls, of each op as many. The same seed gives the same calls. */
export function opCalls(seed: number, count: number): TorchCall[] {
  const names = Object.keys(OP_ROWS);
  return Array.from({ length: count }, (_, i) => {
    const name = names[i % names.length]!;
    return drawnCall(i, name, OP_ROWS[name]!, seed * 65_537 + i);
  });
}
