/** Rare arguments of functions that compose ops: all reductions, rows, axes and sides. */
import * as F from "../../src/functions";
import type { Reduction } from "../../src/ops/composed/scatter-reduce";
import { trilIndices, triuIndices } from "../../src/ranges";
import type { Tensor } from "../../src/tensor/tensor";
import { bool, type Draw, list, type Row } from "../draw";

/** Numbers in order along the last axis. */
function ordered(draw: Draw, shape: readonly number[]) {
  const given = draw.numbers(shape, { requiresGrad: false });
  const length = shape.at(-1)!;
  const values = Array.from(given.values, (_, i) => Math.floor(i / length) + ((i % length) >> 1) / 4 - 0.5);
  return { ...given, values };
}

const reducedInto =
  (reduce: Reduction): Row =>
  (draw) => {
    const shape = [3, 1 + draw.int(3)];
    const [axis, includeSelf] = [draw.int(2), draw.flip()];
    const longer = shape.with(axis, 1 + draw.int(6));
    const indices = draw.whole(longer, shape[axis]!);
    return {
      inputs: [draw.numbers(shape), indices, draw.numbers(longer)],
      code: `torch.scatter_reduce(a, ${axis}, b.long(), c, '${reduce}', include_self=${bool(includeSelf)})`,
      run: (a, b, c) => F.scatterReduce(a!, axis, b!, c!, reduce, { includeSelf }),
      // PyTorch has no second gradients of products.
      second: reduce !== "prod",
    };
  };

const along =
  (code: (axis: number) => string, run: (x: Tensor, axis: number) => Tensor | readonly Tensor[]): Row =>
  (draw) => {
    const shape = draw.sizes(2 + draw.int(2), 20);
    const axis = draw.axis(shape);
    return { inputs: [draw.numbers(shape)], code: code(axis), run: (x) => run(x!, axis) };
  };

const searched: Row = (draw) => {
  const [rows, right] = [1 + draw.int(3), draw.flip()];
  const values = { ...draw.numbers([rows, 4]), requiresGrad: false };
  return {
    inputs: [ordered(draw, [rows, 1 + draw.int(9)]), values],
    code: `torch.searchsorted(a, b, right=${bool(right)})`,
    run: (a, b) => F.searchsorted(a!, b!, { right }),
  };
};

const bins: Row = (draw) => ({
  inputs: [{ ...draw.numbers([1 + draw.int(40)]), requiresGrad: false }],
  code: "torch.histc(a.float(), 7, -0.5, 1.25).to(a.dtype)",
  run: (x) => F.histc(x!, { bins: 7, min: -0.5, max: 1.25 }),
});

const diagonals: Row = (draw) => {
  const [shape, offset] = [draw.sizes(3, 20), draw.int(7) - 3];
  const [a, b] = draw.random.pick([
    [0, 1],
    [1, 0],
    [2, 0],
    [-1, -2],
  ] as const);
  return {
    inputs: [draw.numbers(shape)],
    code: `torch.diagonal(a, ${offset}, ${a}, ${b})`,
    run: (x) => F.diagonal(x!, offset, a, b),
  };
};

const cut: Row = (draw) => {
  const positions = [draw.int(6) - 2, draw.int(6)];
  return {
    inputs: [draw.numbers([draw.int(6), 2])],
    code: `torch.tensor_split(a, ${list(positions)})`,
    run: (x) => F.tensorSplit(x!, positions),
  };
};

const triangles: Row = (draw) => {
  const [rows, columns, offset] = [draw.int(5), draw.int(5), draw.int(5) - 2];
  return {
    inputs: [draw.numbers([1])],
    code: `[torch.tril_indices(${rows}, ${columns}, ${offset}), torch.triu_indices(${rows}, ${columns}, ${offset})]`,
    run: () => [trilIndices(rows, columns, offset), triuIndices(rows, columns, offset)],
  };
};

export const COMPOSITIONS: Readonly<Record<string, Row>> = {
  ...Object.fromEntries(
    (["sum", "mean", "amax", "amin", "prod"] as const).map((reduce) => [
      `scatterReduce ${reduce}`,
      reducedInto(reduce),
    ]),
  ),
  "searchsorted in rows": searched,
  "histc beyond its ends": bins,
  "diagonal of any axes": diagonals,
  "tensorSplit at positions": cut,
  "trilIndices and triuIndices": triangles,
  "cummax along an axis": along(
    (axis) => `torch.cummax(a, ${axis})`,
    (x, axis) => Object.values(F.cummax(x, axis)),
  ),
  "cummin along an axis": along(
    (axis) => `torch.cummin(a, ${axis})`,
    (x, axis) => Object.values(F.cummin(x, axis)),
  ),
  "diff along an axis": along(
    (axis) => `torch.diff(a, 1, ${axis})`,
    (x, axis) => F.diff(x, 1, axis),
  ),
  "nanmedian along an axis": along(
    (axis) => `torch.nanmedian(a, ${axis}, keepdim=True).values`,
    (x, axis) => F.nanmedian(x, axis, true),
  ),
};
