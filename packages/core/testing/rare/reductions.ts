/** Rare arguments of reductions, scans and sorts: several axes, axes from the end, corrections, ties, rows longer than a block. */
import * as F from "../../src/functions";
import type { Tensor } from "../../src/tensor/tensor";
import { bool, type Draw, type Row } from "../draw";

type Reduce = (x: Tensor, axes: readonly number[], keepDim: boolean) => Tensor;

/** Over several axes, or none. */
const over =
  (
    code: (dim: string) => string,
    run: Reduce,
    { least = 0, ...numbers }: Parameters<Draw["numbers"]>[1] & { readonly least?: number } = {},
  ): Row =>
  (draw) => {
    const shape = draw.sizes(1 + draw.int(4));
    const some = draw.axes(shape);
    const [axes, keepDim] = [some.length >= least ? some : [draw.axis(shape)], draw.flip()];
    return {
      inputs: [draw.numbers(shape, numbers)],
      code: code(`(${axes.map((axis) => `${axis},`).join(" ")}), keepdim=${bool(keepDim)}`),
      run: (x) => run(x!, axes, keepDim),
    };
  };

const norm: Row = (draw) => {
  const p = draw.random.pick([1.5, 3, 4, -2, 0, 1, Infinity, -Infinity]);
  return over(
    (dim) => `torch.linalg.vector_norm(a, ${String(p).replace("Infinity", "inf")}, ${dim})`,
    (x, axes, keepDim) => x.norm(p, axes, keepDim),
    { positive: true },
  )(draw);
};

const spread =
  (name: "var" | "std"): Row =>
  (draw) => {
    const shape = draw.sizes(1 + draw.int(3));
    const [axes, keepDim] = [[draw.axis(shape), ...draw.axes(shape)], draw.flip()];
    const rank = shape.length;
    const distinct = axes.filter(
      (axis, i) => axes.findIndex((each) => (each + rank) % rank === (axis + rank) % rank) === i,
    );
    const count = distinct.reduce((product, axis) => product * shape.at(axis)!, 1);
    const correction = draw.random.pick([0, 1, 2, 0.5]);
    const options = { correction, keepDim };
    return {
      inputs: [draw.numbers(shape, { requiresGrad: count > correction + (name === "std" ? 1 : 0) })],
      code: `a.${name}((${distinct},), correction=${correction}, keepdim=${bool(keepDim)})`,
      run: (x) => x![name](distinct, options),
    };
  };

/** A number among few: equals stand beside each other. */
const tied = (draw: Draw, shape: readonly number[]) => ({
  ...draw.numbers(shape, { requiresGrad: false }),
  values: Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => draw.int(4) - 1.5),
});

const sorted: Row = (draw) => {
  const shape = draw.sizes(1 + draw.int(3), 2100);
  const [axis, descending] = [draw.axis(shape), draw.flip()];
  return {
    inputs: [tied(draw, shape)],
    code: `list(torch.sort(a, dim=${axis}, descending=${bool(descending)}, stable=True))`,
    run: (x) => {
      const { values, indices } = F.sort(x!, axis, { descending, stable: true });
      return [values, indices];
    },
  };
};

const largest =
  (name: "argmax" | "argmin"): Row =>
  (draw) => {
    const shape = draw.sizes(1 + draw.int(3), 1030);
    const [axis, keepDim] = [draw.axis(shape), draw.flip()];
    // Distinct numbers: of equals PyTorch chooses any.
    const size = shape.reduce((a, b) => a * b, 1);
    const values = Array.from({ length: size }, (_, i) => ((i * 7919) % 100_003) / 256 - 2);
    const whole = draw.int(3) === 0;
    return {
      inputs: [{ ...draw.numbers(shape, { requiresGrad: false }), values }],
      code: whole ? `a.${name}()` : `a.${name}(${axis}, keepdim=${bool(keepDim)})`,
      run: (x) => (whole ? x![name]() : x![name](axis, keepDim)),
    };
  };

const topk: Row = (draw) => {
  const shape = draw.sizes(1 + draw.int(3), 2100);
  const axis = draw.axis(shape);
  const extent = shape.at(axis)!;
  const k = draw.random.pick([0, 1, extent, 1 + draw.int(extent)]);
  const largest = draw.flip();
  const size = shape.reduce((a, b) => a * b, 1);
  const values = Array.from({ length: size }, (_, i) => ((i * 7919) % 100_003) / 256 - 2);
  return {
    inputs: [{ ...draw.numbers(shape), values }],
    code: `list(a.topk(${k}, ${axis}, largest=${bool(largest)}))`,
    run: (x) => {
      const { values, indices } = F.topk(x!, k, axis, { largest });
      return [values, indices];
    },
  };
};

const scanned =
  (code: (dim: number) => string, run: (x: Tensor, axis: number) => Tensor): Row =>
  (draw) => {
    const shape = draw.sizes(1 + draw.int(3));
    const axis = draw.axis(shape);
    // Factors near 1, so that long products stay numbers.
    return { inputs: [draw.numbers(shape, { low: 0.9, high: 1.1 })], code: code(axis), run: (x) => run(x!, axis) };
  };

/** Rows of which some are -Infinity as a whole: their gradient is NaN in PyTorch, and 0 as ours says. */
const infinite =
  (code: (dim: number) => string, run: (x: Tensor, axis: number) => Tensor): Row =>
  (draw) => {
    const shape = [2 + draw.int(3), 1 + draw.int(4)];
    const x = draw.numbers(shape);
    const values = Array.from(x.values, (value, i) => (i < shape[1]! || draw.int(5) === 0 ? -Infinity : value));
    const zeros = "y = a * 1;;y.requires_grad and y.register_hook(lambda g: torch.nan_to_num(g))";
    return { inputs: [{ ...x, values }], code: `${zeros};;${code(1)}`, run: (x) => run(x!, 1), second: false };
  };

const rows =
  (code: (dim: number) => string, run: (x: Tensor, axis: number) => Tensor): Row =>
  (draw) => {
    const shape = draw.sizes(1 + draw.int(3), 1030);
    const axis = draw.axis(shape);
    return { inputs: [draw.numbers(shape, { low: -30, high: 30 })], code: code(axis), run: (x) => run(x!, axis) };
  };

export const REDUCTIONS: Readonly<Record<string, Row>> = {
  "sum of axes": over(
    (dim) => `a.sum(${dim})`,
    (x, axes, keep) => x.sum(axes, keep),
  ),
  "mean of axes": over(
    (dim) => `a.mean(${dim})`,
    (x, axes, keep) => x.mean(axes, keep),
  ),
  "max of axes": over(
    (dim) => `a.amax(${dim})`,
    (x, axes, keep) => x.max(axes, keep),
  ),
  "min of axes": over(
    (dim) => `a.amin(${dim})`,
    (x, axes, keep) => x.min(axes, keep),
  ),
  "any of axes": over(
    (dim) => `(a > 1).any(${dim})`,
    (x, axes, keep) => F.any(x.gt(1), axes, keep),
  ),
  "all of axes": over(
    (dim) => `(a < 1).all(${dim})`,
    (x, axes, keep) => F.all(x.lt(1), axes, keep),
  ),
  "logsumexp of axes": over(
    (dim) => `torch.logsumexp(a, ${dim})`,
    (x, axes, keep) => F.logsumexp(x, axes, keep),
    { least: 1 }, // PyTorch has no answer for none
  ),
  "logsumexp of -Infinity": infinite(
    (dim) => `torch.logsumexp(y, ${dim})`,
    (x, axis) => F.logsumexp(x, axis),
  ),
  "prod of axes": (draw) => {
    const shape = draw.sizes(2, 40);
    const keepDim = draw.flip();
    return {
      inputs: [draw.numbers(shape, { low: 0.8, high: 1.2 })],
      code: keepDim ? "a.prod().reshape(1, 1)" : "a.prod()",
      run: (x) => F.prod(x!, [1, 0], keepDim),
    };
  },
  "norm of axes": norm,
  "var of axes": spread("var"),
  "std of axes": spread("std"),
  "argmax of long rows": largest("argmax"),
  "argmin of long rows": largest("argmin"),
  "sort of ties": sorted,
  "argsort of ties": (draw) => {
    const shape = draw.sizes(1 + draw.int(3), 2100);
    const [axis, descending] = [draw.axis(shape), draw.flip()];
    return {
      inputs: [tied(draw, shape)],
      code: `torch.argsort(a, dim=${axis}, descending=${bool(descending)}, stable=True)`,
      run: (x) => F.argsort(x!, axis, { descending, stable: true }),
    };
  },
  "topk of k": topk,
  "cumsum of long rows": scanned((dim) => `a.cumsum(${dim})`, F.cumsum),
  "cumprod of long rows": scanned((dim) => `a.cumprod(${dim})`, F.cumprod),
  "logcumsumexp of long rows": scanned((dim) => `torch.logcumsumexp(a, ${dim})`, F.logcumsumexp),
  "softmax of long rows": rows(
    (dim) => `a.softmax(${dim})`,
    (x, axis) => x.softmax(axis),
  ),
  "logSoftmax of long rows": rows(
    (dim) => `a.log_softmax(${dim})`,
    (x, axis) => x.logSoftmax(axis),
  ),
  "softmax of -Infinity": (draw) => {
    const x = draw.numbers([3, 4]);
    const values = Array.from(x.values, (value, i) => (i % 4 > 0 && draw.flip() ? -Infinity : value));
    return { inputs: [{ ...x, values }], code: "a.softmax(1)", run: (a) => a!.softmax(1), second: false };
  },
  "any and all of nothing": (draw) => {
    const shape = draw.random.pick([[0, 3], [2, 0], [0]]);
    const axis = draw.axis(shape);
    const numbers = draw.numbers(shape);
    return {
      inputs: [numbers],
      code: `[a.sum(${axis}), a.prod(${axis}), a.any(${axis}), a.all(${axis}), a.mean(${axis}), a.cumsum(${axis})]`,
      run: (a) => [a!.sum(axis), F.prod(a!, axis), F.any(a!, axis), F.all(a!, axis), a!.mean(axis), F.cumsum(a!, axis)],
      second: false,
    };
  },
};
