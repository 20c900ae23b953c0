/** Ops that give elements other places: joined, cut, stretched, padded, masked by place, summed up along an axis. */
import {
  cumprod,
  cumsum,
  expand,
  flip,
  logcumsumexp,
  pad,
  roll,
  split,
  squeeze,
  stack,
  type Tensor,
  tril,
  triu,
  unsqueeze,
} from "@opt/core";
import { isFloat } from "./numbers";
import type { OpKind } from "./op-kind";
import type { Shape } from "./program";

const triangle = (run: (x: Tensor, diagonal: number) => Tensor): OpKind => ({
  run: ([x], { diagonal }) => run(x as Tensor, diagonal as number),
  spec: ([x]) => x!,
});

const scan = (run: (x: Tensor, axis: number) => Tensor): OpKind => ({
  run: ([x], { axis }) => run(x as Tensor, axis as number),
  spec: ([x]) => ({ shape: x!.shape, dtype: isFloat(x!.dtype) ? x!.dtype : "i32" }),
});

export const ARRANGING: Readonly<Record<string, OpKind>> = {
  squeeze: {
    run: ([x]) => squeeze(x as Tensor),
    spec: ([x]) => ({ shape: x!.shape.filter((extent) => extent !== 1), dtype: x!.dtype }),
    view: true,
  },
  unsqueeze: {
    run: ([x], { axis }) => unsqueeze(x as Tensor, axis as number),
    spec: ([x], { axis }) => ({ shape: x!.shape.toSpliced(axis as number, 0, 1), dtype: x!.dtype }),
    view: true,
  },
  expand: {
    run: ([x], { shape }) => expand(x as Tensor, shape as Shape),
    spec: ([x], { shape }) => ({ shape: shape as Shape, dtype: x!.dtype }),
  },
  stack: {
    run: (tensors, { axis }) => stack(tensors as Tensor[], axis as number),
    spec: (tensors, { axis }) => ({
      shape: tensors[0]!.shape.toSpliced(axis as number, 0, tensors.length),
      dtype: tensors[0]!.dtype,
    }),
  },
  /** One of the pieces. */
  split: {
    run: ([x], { size, axis, piece }) => {
      const pieces = split(x as Tensor, size as number, axis as number);
      for (const [i, other] of pieces.entries()) if (i !== piece) other.dispose();
      return pieces[piece as number]!;
    },
    spec: ([x], { size, axis, piece }) => {
      const rest = x!.shape[axis as number]! - (size as number) * (piece as number);
      return { shape: x!.shape.with(axis as number, Math.min(size as number, rest)), dtype: x!.dtype };
    },
  },
  pad: {
    run: ([x], { padding, value }) => pad(x as Tensor, padding as number[], { value: value as number }),
    spec: ([x], { padding }) => {
      const sides = padding as readonly number[];
      const of = (axis: number) => (sides[2 * axis] ?? 0) + (sides[2 * axis + 1] ?? 0);
      return { shape: x!.shape.map((extent, i) => extent + of(x!.shape.length - 1 - i)), dtype: x!.dtype };
    },
  },
  tril: triangle(tril),
  triu: triangle(triu),
  flip: { run: ([x], { axis }) => flip(x as Tensor, axis as number), spec: ([x]) => x! },
  roll: { run: ([x], { by, axis }) => roll(x as Tensor, by as number, axis as number), spec: ([x]) => x! },
  cumsum: scan(cumsum),
  cumprod: scan(cumprod),
  logcumsumexp: scan(logcumsumexp),
};
