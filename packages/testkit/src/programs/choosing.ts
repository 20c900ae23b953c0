/** Ops that compare and choose elements, and those that measure them over axes. */
import {
  argsort,
  clamp,
  eq,
  gatherAlong,
  ge,
  gt,
  le,
  logsumexp,
  lt,
  maskedFill,
  ne,
  oneHot,
  prod,
  sort,
  type Tensor,
  topk,
  variance,
  where,
} from "@opt/core";
import { isFloat } from "./numbers";
import { axesOf, floatOf, type OpKind, reduced, together } from "./op-kind";

const COMPARED = { eq, ne, lt, le, gt, ge };

const comparison = (name: keyof typeof COMPARED): OpKind => ({
  run: ([a, b]) => COMPARED[name](a!, b!),
  spec: (tensors, _, numbers) => together(tensors, numbers, "bool"),
});

/** Of floats. */
const measure = (run: (x: Tensor, axis: number[], keepDim: boolean) => Tensor): OpKind => ({
  run: ([x], { axis, keepDim }) => run(x as Tensor, axesOf((x as Tensor).shape, { axis }) as number[], !!keepDim),
  spec: ([x], options) => ({ shape: reduced(x!.shape, options), dtype: floatOf(x!.dtype) }),
});

export const CHOOSING: Readonly<Record<string, OpKind>> = {
  ...Object.fromEntries((["eq", "ne", "lt", "le", "gt", "ge"] as const).map((name) => [name, comparison(name)])),
  where: {
    run: ([condition, a, b]) => where(condition as Tensor, a!, b!),
    spec: (tensors, _, numbers) => ({
      shape: together(tensors, []).shape,
      dtype: together(tensors.slice(1), numbers).dtype,
    }),
  },
  maskedFill: {
    run: ([x, mask], { value }) => maskedFill(x as Tensor, mask as Tensor, value as number),
    spec: (tensors) => ({ shape: together(tensors, []).shape, dtype: tensors[0]!.dtype }),
  },
  clamp: {
    run: ([x], { low = null, high = null }) => clamp(x as Tensor, low as number | null, high as number | null),
    spec: ([x]) => x!,
  },
  min: {
    run: ([x], { axis, keepDim }) => (x as Tensor).min(axis as number | undefined, keepDim as boolean | undefined),
    spec: ([x], options) => ({ shape: reduced(x!.shape, options), dtype: x!.dtype }),
  },
  argmin: {
    run: ([x], { axis, keepDim }) => (x as Tensor).argmin(axis as number | undefined, keepDim as boolean | undefined),
    spec: ([x], options) => ({ shape: reduced(x!.shape, options), dtype: "i32" }),
  },
  var: measure((x, axis, keepDim) => variance(x, axis, { keepDim, correction: 0 })),
  norm: {
    run: ([x], { p = 2, axis, keepDim }) => (x as Tensor).norm(Number(p), axis as number | undefined, !!keepDim),
    spec: ([x], options) => ({ shape: reduced(x!.shape, options), dtype: floatOf(x!.dtype) }),
  },
  logsumexp: measure(logsumexp),
  prod: {
    run: ([x], { axis, keepDim }) => prod(x as Tensor, axis as number, !!keepDim),
    spec: ([x], options) => ({ shape: reduced(x!.shape, options), dtype: isFloat(x!.dtype) ? x!.dtype : "i32" }),
  },
  sort: {
    run: ([x], { axis, descending }) => {
      const { values, indices } = sort(x as Tensor, axis as number, { descending: !!descending });
      indices.dispose();
      return values;
    },
    spec: ([x]) => x!,
  },
  argsort: {
    run: ([x], { axis, descending }) => argsort(x as Tensor, axis as number, { descending: !!descending }),
    spec: ([x]) => ({ shape: x!.shape, dtype: "i32" }),
  },
  topk: {
    run: ([x], { k, axis, largest }) => topk(x as Tensor, k as number, axis as number, { largest: !!largest }).values,
    spec: ([x], { k, axis }) => ({ shape: x!.shape.with(axis as number, k as number), dtype: x!.dtype }),
  },
  gatherAlong: {
    run: ([x, indices], { axis }) => gatherAlong(x as Tensor, indices as Tensor, axis as number),
    spec: ([x, indices]) => ({ shape: indices!.shape, dtype: x!.dtype }),
  },
  oneHot: {
    run: ([indices], { classes }) => oneHot(indices as Tensor, classes as number),
    spec: ([indices], { classes }) => ({ shape: [...indices!.shape, classes as number], dtype: "i32" }),
  },
};
