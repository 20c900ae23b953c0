/** Options of ops on every path: tensors of no axes, of one element and of more, in every float dtype, and options that are 0 or odd. */
import type { CallInput } from "@opt/testkit";
import * as F from "../../src/functions";
import type { Tensor } from "../../src/tensor/tensor";
import { bool, type Draw, type Row, type Shape } from "../draw";

const SHAPES: readonly Shape[] = [[], [], [1], [3], [2, 3]];

/** An op of one tensor along an axis, with an option. */
const along =
  (of: (draw: Draw, axis: number, extent: number) => readonly [code: string, run: (x: Tensor) => Tensor]): Row =>
  (draw) => {
    const shape = draw.random.pick(SHAPES);
    const axis = draw.axis(shape);
    const [code, run] = of(draw, axis, shape.at(axis) ?? 1);
    return { inputs: [draw.numbers(shape, { special: false })], code, run: (x) => run(x!), second: false };
  };

/** One without an axis. */
const each = (of: (draw: Draw) => readonly [code: string, run: (x: Tensor) => Tensor]): Row =>
  along((draw) => of(draw));

type Reduction = (x: Tensor, axis: number, keepDim: boolean) => Tensor;
const kept = (call: string, run: Reduction): Row =>
  along((draw, axis) => {
    const keepDim = draw.flip();
    return [`${call}(a, ${axis}, keepdim=${bool(keepDim)})`, (x) => run(x, axis, keepDim)];
  });

export const NUMBERS: Readonly<Record<string, Row>> = {
  "indexAdd by alpha": (draw) => {
    const shape = draw.random.pick(SHAPES);
    const axis = draw.axis(shape);
    const count = draw.random.pick(shape.length === 0 ? [1] : [1, 1, 2, 4]);
    const indices: CallInput = {
      ...draw.whole([count], shape.at(axis) ?? 1),
      ...(count === 1 && draw.flip() && { shape: [] }),
    };
    const from = shape.length === 0 ? [] : shape.with(axis < 0 ? axis + shape.length : axis, count);
    const alpha = draw.random.pick([0, 0.5, 2, -3]);
    return {
      inputs: [draw.numbers(shape, { special: false }), indices, draw.numbers(from, { special: false })],
      code: `torch.index_add(a, ${axis}, b, c, alpha=${alpha})`,
      run: (x, at, source) => F.indexAdd(x!, axis, at!, source!, { alpha }),
      second: false,
    };
  },
  "sum, kept": kept("torch.sum", (x, axis, keepDim) => x.sum(axis, keepDim)),
  "mean, kept": kept("torch.mean", (x, axis, keepDim) => x.mean(axis, keepDim)),
  "prod, kept": kept("torch.prod", (x, axis, keepDim) => F.prod(x, axis, keepDim)),
  "max, kept": kept("torch.amax", (x, axis, keepDim) => x.max(axis, keepDim)),
  "min, kept": kept("torch.amin", (x, axis, keepDim) => x.min(axis, keepDim)),
  "logsumexp, kept": kept("torch.logsumexp", (x, axis, keepDim) => F.logsumexp(x, axis, keepDim)),
  "argmax, kept": kept("torch.argmax", (x, axis, keepDim) => x.argmax(axis, keepDim)),
  "argmin, kept": kept("torch.argmin", (x, axis, keepDim) => x.argmin(axis, keepDim)),
  "norm by p": along((draw, axis) => {
    const [p, keepDim] = [draw.random.pick([0, 1, 2, 3, 0.5, Infinity, -Infinity]), draw.flip()];
    const code = `torch.linalg.vector_norm(a, ${String(p).replace("Infinity", "inf")}, ${axis}, keepdim=${bool(keepDim)})`;
    return [code, (x) => x.norm(p, axis, keepDim)];
  }),
  "var and std by correction": along((draw, axis, extent) => {
    const [correction, keepDim] = [draw.random.pick(extent > 2 ? [0, 0.5, 1, 2] : [0, 0.5]), draw.flip()];
    const name = draw.random.pick(extent > 1 ? (["var", "std"] as const) : (["var"] as const));
    const code = `a.${name}(${axis}, correction=${correction}, keepdim=${bool(keepDim)})`;
    return [code, (x) => x[name](axis, { correction, keepDim })];
  }),
  "topk by side": along((draw, axis, extent) => {
    const [k, largest] = [draw.int(extent + 1), draw.flip()];
    return [`a.topk(${k}, ${axis}, ${bool(largest)}).values`, (x) => F.topk(x, k, axis, { largest }).values];
  }),
  "sort by side": along((draw, axis) => {
    const descending = draw.flip();
    const code = `torch.sort(a, dim=${axis}, descending=${bool(descending)}, stable=True).values`;
    return [code, (x) => F.sort(x, axis, { descending, stable: true }).values];
  }),
  "round by decimals": each((draw) => {
    const decimals = draw.random.pick([0, 1, -1, 2]);
    return [`a.float().round(decimals=${decimals})`, (x) => F.round(x.to("f32"), { decimals })];
  }),
  "leakyRelu by slope": each((draw) => {
    const slope = draw.random.pick([0, -0.5, 0.3]);
    return [`F.leaky_relu(a, ${slope})`, (x) => F.leakyRelu(x, slope)];
  }),
  "elu by alpha": each((draw) => {
    const alpha = draw.random.pick([0, 0.3, 2.5]);
    return [`F.elu(a, ${alpha})`, (x) => F.elu(x, alpha)];
  }),
  "softplus by beta and threshold": each((draw) => {
    const [beta, threshold] = [draw.random.pick([0.5, 3]), draw.random.pick([0, 1, -1])];
    return [`F.softplus(a, ${beta}, ${threshold})`, (x) => F.softplus(x, beta, threshold)];
  }),
  "gelu by approximation": each((draw) => {
    const approximate = draw.random.pick(["none", "tanh"] as const);
    return [`F.gelu(a, approximate="${approximate}")`, (x) => F.gelu(x, { approximate })];
  }),
  "clamp at 0": each((draw) =>
    draw.flip() ? ["a.clamp(min=0)", (x) => x.clamp(0)] : ["a.clamp(max=0)", (x) => x.clamp(null, 0)],
  ),
};
