/** Every op that programs use: how it is called, and the shape and dtype that PyTorch would give. */

import {
  add,
  avgPool2d,
  concat,
  conv2d,
  cos,
  crossEntropyRows,
  type DType,
  div,
  elu,
  erf,
  fma,
  fusedAttention,
  gather,
  gelu,
  hardtanh,
  layerNorm,
  leakyRelu,
  less,
  maskedFill,
  maximum,
  maxPool2d,
  minimum,
  mul,
  pow,
  relu6,
  silu,
  sin,
  softplus,
  square,
  sub,
  type Tensor,
  tril,
  where,
} from "@opt/core";
import { ARRANGING } from "./arranging";
import { CHOOSING } from "./choosing";
import { INDEXING } from "./indexing";
import { LAYERS } from "./layers";
import { isFloat } from "./numbers";
import { broadcast, floatOf, type OpKind, promote, reduced, together } from "./op-kind";
import type { Shape } from "./program";

const unary = (name: "neg" | "abs" | "relu" | "sqrt" | "exp" | "log" | "tanh" | "sigmoid" | "gelu"): OpKind => ({
  run: ([x]) => (x as Tensor)[name](),
  spec: (tensors) => together(tensors, [], ["neg", "abs", "relu"].includes(name) ? undefined : "float"),
});

const called = (op: (x: Tensor) => Tensor): OpKind => ({
  run: ([x]) => op(x as Tensor),
  spec: (tensors) => together(tensors, [], "float"),
});

const FUNCTIONS: Record<string, (a: Tensor | number, b: Tensor) => Tensor> = {
  add,
  sub,
  mul,
  div,
  pow,
  maximum,
  minimum,
};
const binary = (name: "add" | "sub" | "mul" | "div" | "pow" | "maximum" | "minimum", result?: "float"): OpKind => ({
  run: ([a, b]) => (typeof a === "number" ? FUNCTIONS[name]!(a, b as Tensor) : (a as Tensor)[name](b!)),
  spec: (tensors, _, numbers) => together(tensors, numbers, result),
});

const reduction = (name: "sum" | "mean" | "max"): OpKind => ({
  run: ([x], { axis, keepDim }) => (x as Tensor)[name](axis as number | undefined, keepDim as boolean | undefined),
  spec: ([x], options) => ({
    shape: reduced(x!.shape, options),
    dtype:
      name === "max" ? x!.dtype : name === "mean" ? floatOf(x!.dtype) : isFloat(x!.dtype) ? x!.dtype : ("i32" as DType),
  }),
});

const rows = (name: "softmax" | "logSoftmax"): OpKind => ({
  run: ([x], { axis }) => (x as Tensor)[name](axis as number),
  spec: ([x]) => ({ shape: x!.shape, dtype: floatOf(x!.dtype) }),
});

/** Extents of the rows and columns of a matrix operand, as the product reads it. */
const matrix = (shape: Shape, transposed: unknown): [number, number] =>
  transposed ? [shape.at(-1)!, shape.at(-2)!] : [shape.at(-2)!, shape.at(-1)!];

const pooled = (shape: Shape, kernel: number, stride: number): Shape =>
  shape.map((extent, i) => (i < 2 ? extent : Math.floor((extent - kernel) / stride) + 1));

const bound = (at: number, extent: number) => Math.min(Math.max(at < 0 ? at + extent : at, 0), extent);

export const OPS: Readonly<Record<string, OpKind>> = {
  neg: unary("neg"),
  abs: unary("abs"),
  relu: unary("relu"),
  sqrt: unary("sqrt"),
  exp: unary("exp"),
  log: unary("log"),
  tanh: unary("tanh"),
  sigmoid: unary("sigmoid"),
  gelu: unary("gelu"),
  erf: called(erf),
  sin: called(sin),
  cos: called(cos),
  silu: called(silu),
  geluTanh: called((x) => gelu(x, { approximate: "tanh" })),
  softplus: called(softplus),
  leakyRelu: {
    run: ([x]) => leakyRelu(x as Tensor, 0.25),
    spec: ([x]) => x!,
  },
  relu6: called(relu6),
  hardtanh: called(hardtanh),
  elu: called(elu),
  square: called(square),
  add: binary("add"),
  sub: binary("sub"),
  mul: binary("mul"),
  div: binary("div", "float"),
  pow: binary("pow"),
  maximum: binary("maximum"),
  minimum: binary("minimum"),
  fma: {
    run: ([a, b, c]) => fma(a as Tensor, b as Tensor, c as Tensor),
    spec: (tensors, _, numbers) => together(tensors, numbers),
  },
  less: {
    run: ([a, b]) => less(a as Tensor, b as Tensor),
    spec: (tensors, _, numbers) => together(tensors, numbers, "bool"),
  },
  select: {
    run: ([condition, a, b]) => where(condition as Tensor, a as Tensor, b as Tensor),
    spec: (tensors, _, numbers) => ({
      shape: together(tensors, []).shape,
      dtype: together(tensors.slice(1), numbers).dtype,
    }),
  },
  sum: reduction("sum"),
  mean: reduction("mean"),
  max: reduction("max"),
  argmax: {
    run: ([x], { axis, keepDim }) => (x as Tensor).argmax(axis as number | undefined, keepDim as boolean | undefined),
    spec: ([x], options) => ({ shape: reduced(x!.shape, options), dtype: "i32" }),
  },
  softmax: rows("softmax"),
  logSoftmax: rows("logSoftmax"),
  layerNorm: {
    run: ([x, weight, bias]) => layerNorm(x as Tensor, weight as Tensor, (bias as Tensor | undefined) ?? null),
    spec: (tensors) => ({ shape: tensors[0]!.shape, dtype: tensors.map(({ dtype }) => dtype).reduce(promote) }),
  },
  matmul: {
    run: ([a, b], { transposeA, transposeB }) =>
      (a as Tensor).matmul(b as Tensor, { transposeA: !!transposeA, transposeB: !!transposeB }),
    spec: ([a, b], { transposeA, transposeB }) => {
      // The result lacks the axis of a vector.
      const rows = a!.shape.length === 1 ? [] : [matrix(a!.shape, transposeA)[0]];
      const columns = b!.shape.length === 1 ? [] : [matrix(b!.shape, transposeB)[1]];
      const leading = broadcast([a!.shape.slice(0, -2), b!.shape.slice(0, -2)]) ?? [];
      return { shape: [...leading, ...rows, ...columns], dtype: promote(a!.dtype, b!.dtype) };
    },
  },
  /** By one kernel where the device has it. */
  attention: {
    run: (operands, { isCausal }) => {
      const [query, key, value] = operands as [Tensor, Tensor, Tensor];
      const seen = fusedAttention(query, key, value, { scale: 0.5, isCausal: !!isCausal });
      if (seen !== null) return seen;
      const scores = query.mul(0.5).matmul(key, { transposeB: true });
      // tril of ones is 1 where a query sees a key.
      const unseen = tril(scores.detach().mul(0).add(1)).eq(0);
      return (isCausal ? maskedFill(scores, unseen, Number.NEGATIVE_INFINITY) : scores).softmax(-1).matmul(value);
    },
    spec: ([query]) => query!,
  },
  gather: {
    run: ([table, indices]) => gather(table as Tensor, indices as Tensor),
    spec: ([table, indices]) => ({ shape: [...indices!.shape, ...table!.shape.slice(1)], dtype: table!.dtype }),
  },
  crossEntropy: {
    run: ([logits, labels]) => crossEntropyRows(logits as Tensor, labels as Tensor),
    spec: ([logits]) => ({ shape: logits!.shape.slice(0, -1), dtype: logits!.dtype }),
  },
  conv2d: {
    run: ([x, weight], options) => conv2d(x as Tensor, weight as Tensor, null, options),
    spec: ([x, weight], { stride = 1, padding = 0 }) => {
      const extent = (i: number) =>
        Math.floor((x!.shape[i]! + 2 * (padding as number) - weight!.shape[i]!) / (stride as number)) + 1;
      return {
        shape: [x!.shape[0]!, weight!.shape[0]!, extent(2), extent(3)],
        dtype: promote(x!.dtype, weight!.dtype),
      };
    },
  },
  maxPool2d: {
    run: ([x], { kernel, stride }) => maxPool2d(x as Tensor, kernel as number, { stride: stride as number }),
    spec: ([x], { kernel, stride }) => ({
      shape: pooled(x!.shape, kernel as number, stride as number),
      dtype: x!.dtype,
    }),
  },
  avgPool2d: {
    run: ([x], { kernel, stride }) => avgPool2d(x as Tensor, kernel as number, { stride: stride as number }),
    spec: ([x], { kernel, stride }) => ({
      shape: pooled(x!.shape, kernel as number, stride as number),
      dtype: x!.dtype,
    }),
  },
  concat: {
    run: (tensors, { axis }) => concat(tensors as Tensor[], axis as number),
    spec: (tensors, { axis }) => ({
      shape: tensors[0]!.shape.map((extent, i) =>
        i === axis ? tensors.reduce((total, { shape }) => total + shape[i]!, 0) : extent,
      ),
      dtype: tensors[0]!.dtype,
    }),
  },
  reshape: {
    run: ([x], { shape }) => (x as Tensor).reshape(shape as Shape),
    spec: ([x], { shape }) => ({ shape: shape as Shape, dtype: x!.dtype }),
    view: true,
  },
  slice: {
    run: ([x], { start, end, axis }) => (x as Tensor).slice(start as number, end as number, axis as number),
    spec: ([x], { start, end, axis }) => ({
      shape: x!.shape.map((extent, i) =>
        i === axis ? Math.max(bound(end as number, extent) - bound(start as number, extent), 0) : extent,
      ),
      dtype: x!.dtype,
    }),
    view: true,
  },
  permute: {
    run: ([x], { axes }) => (x as Tensor).permute(axes as number[]),
    spec: ([x], { axes }) => ({ shape: (axes as number[]).map((axis) => x!.shape[axis]!), dtype: x!.dtype }),
    view: true,
  },
  transpose: {
    run: ([x]) => (x as Tensor).transpose(),
    spec: ([x]) => ({
      shape: [...x!.shape.slice(0, -2), x!.shape.at(-1)!, x!.shape.at(-2)!],
      dtype: x!.dtype,
    }),
    view: true,
  },
  detach: { run: ([x]) => (x as Tensor).detach(), spec: ([x]) => x!, view: true },
  clone: { run: ([x]) => (x as Tensor).clone(), spec: ([x]) => x! },
  to: {
    run: ([x], { dtype }) => (x as Tensor).to(dtype as DType),
    spec: ([x], { dtype }) => ({ shape: x!.shape, dtype: dtype as DType }),
    view: true,
  },
  ...CHOOSING,
  ...ARRANGING,
  ...INDEXING,
  ...LAYERS,
};
