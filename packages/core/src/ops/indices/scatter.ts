/** Elements put into a tensor, or added to it, at places by index. */

import { tidy } from "../../device/scope";
import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import { show } from "../../errors/show";
import { overSamples } from "../../tensor/batching";
import { noGrad } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import { axisOfElements, type Shape, sameShape, showShape } from "../../values/shape";
import { cast } from "../cast";
import { checkDevice } from "../check-device";
import { checkTensor } from "../check-tensor";
import { computeOn, WRAP } from "../compute";
import { definePrimitive } from "../define-function";
import { elementwise } from "../elementwise/elementwise";
import { fill, inWords } from "../map";
import { reshape, slice, transpose } from "../shape/shape";
import { checkIndexDType, checkIndices } from "./check-indices";
import { flatPlaces } from "./flat-places";
import { gather, scatterRows } from "./gather";
import { sources, untouched } from "./put-rows";

export interface IndexAddOptions {
  /** The source is multiplied by it. Default 1. */
  readonly alpha?: number;
}

/**
 * x + alpha * source, a slice of the source along the axis going to each index (i32 [n]): torch.index_add. Equal indices add up.
 * An index out of range throws where the device shares the host's memory, and adds nothing elsewhere.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH; BAD_ARGUMENT for an index out of range
 * @example
 * indexAdd(zeros([3]), 0, tensor([2, 0, 2], { dtype: "i32" }), tensor([1, 2, 3])); // [2, 0, 4]
 */
export const indexAdd = /* @__PURE__ */ definePrimitive(
  {
    torch: "a.index_add(0, b.long(), c, alpha=2)",
    tensors: ["nm", "i32 k <n", "km"],
    between: [0],
    arguments: [{ alpha: 2 }],
  },
  (x: Tensor, axis: number, indices: Tensor, source: Tensor, options: IndexAddOptions = {}): Tensor => {
    const samples = overSamples(indexAdd, x, axis, indices, source, options);
    if (samples) return samples;
    const where = "indexAdd";
    const along = checkOperands(where, x, axis, indices, source);
    checkOptions(where, options, { alpha: "number" });
    const { alpha = 1 } = options;
    const isNumber = x.shape.length === 0;
    const shape = isNumber ? [] : x.shape.with(along, indices.size);
    const isRow = indices.shape.length === 1 || indices.shape.length === 0;
    const fits = isRow && sameShape(source.shape, shape) && (!isNumber || indices.size === 1);
    check(
      fits,
      "BAD_SHAPE",
      where,
      () =>
        `needs indices [n] and a source ${showShape(shape)}, got ${showShape(indices.shape)} and ${showShape(source.shape)}.`,
      "scatterAdd has an index for each element.",
    );
    if (isNumber || indices.shape.length === 0)
      return asRows([x, indices, source], (x, indices, source) => indexAdd(x, along, indices, source, options));
    checkIndices(where, indices, x.shape[along]!);
    return tidy(() => {
      const scaled = alpha === 1 ? source : elementwise("mul", [source, alpha]);
      const rows = along === 0 ? scaled : transpose(scaled, 0, along);
      const { shape: whole } = along === 0 ? x : { shape: swapped(x.shape, along) };
      const sums = summed(rows, indices, whole);
      return elementwise("add", [x, along === 0 ? sums : transpose(sums, 0, along)]);
    });
  },
);

/**
 * x with the source's elements added along the axis: result[index[i, j], j] += source[i, j] for axis 0 (torch.scatter_add). Indices have
 * x's number of axes and at most the source's extents; equal indices add up. An index out of range throws where the device shares the
 * host's memory, and adds nothing elsewhere.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH; BAD_ARGUMENT for an index out of range
 * @example
 * scatterAdd(zeros([3]), 0, tensor([2, 0, 2], { dtype: "i32" }), tensor([1, 2, 3])); // [2, 0, 4]
 */
export const scatterAdd = /* @__PURE__ */ definePrimitive(
  { torch: "a.scatter_add(1, b.long(), c)", tensors: ["nm", "i32 nm <m", "nm"], between: [1] },
  (x: Tensor, axis: number, indices: Tensor, source: Tensor): Tensor => {
    const samples = overSamples(scatterAdd, x, axis, indices, source);
    if (samples) return samples;
    const where = "scatterAdd";
    const along = checkOperands(where, x, axis, indices, source);
    if ([x, indices, source].some(({ shape }) => shape.length === 0))
      return asRows([x, indices, source], (x, indices, source) => scatterAdd(x, along, indices, source));
    checkExtents(where, x, along, indices, source);
    return tidy(() => {
      const places = reshape(flatPlaces(indices, x.shape, along), [indices.size]);
      const sums = summed(reshape(fitted(source, indices.shape), [indices.size]), places, [x.size]);
      return elementwise("add", [x, reshape(sums, x.shape)]);
    });
  },
);

/**
 * x with the source's elements put in along the axis: result[index[i, j], j] = source[i, j] for axis 0 (torch.scatter). Indices have x's
 * number of axes and at most the source's extents; of equal ones the last counts. The source may be a number. An index out of range throws
 * where the device shares the host's memory, and puts nothing elsewhere.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH; BAD_ARGUMENT for an index out of range
 * @example
 * scatter(zeros([2, 3]), 1, tensor([[2], [0]], { dtype: "i32" }), 1); // [[0, 0, 1], [1, 0, 0]]
 */
export const scatter = /* @__PURE__ */ definePrimitive(
  { torch: "a.scatter(1, b.long(), c)", tensors: ["n4", "i32 n1 <4", "n1"], between: [1] },
  (x: Tensor, axis: number, indices: Tensor, source: Tensor | number): Tensor => {
    const samples = overSamples(scatter, x, axis, indices, source);
    if (samples) return samples;
    const where = "scatter";
    const along = checkOperands(where, x, axis, indices, typeof source === "number" ? x : source);
    if ([x, indices, source].some((given) => given instanceof Tensor && given.shape.length === 0)) {
      if (typeof source === "number") return asRows([x, indices], (x, indices) => scatter(x, along, indices, source));
      return asRows([x, indices, source], (x, indices, source) => scatter(x, along, indices, source));
    }
    checkExtents(where, x, along, indices, typeof source === "number" ? indices : source);
    return tidy(() => {
      const flat = reshape(flatPlaces(indices, x.shape, along), [indices.size]);
      const given =
        typeof source === "number" ? fill(indices.shape, source, x.dtype, x.device) : fitted(source, indices.shape);
      const [row, values] = [reshape(x, [x.size]), reshape(given, [indices.size])];
      if (x.size === 0 || indices.size === 0) return reshape(untouched(row, values), x.shape);
      const { isPut, from } = noGrad(() => sources(flat, x.size));
      return reshape(elementwise("select", [isPut, gather(values, from), row]), x.shape);
    });
  },
);

/** Rows added up by index, in their dtype: i32 modulo 2^32, u8 modulo 2^8. */
export function summed(rows: Tensor, indices: Tensor, shape: Shape): Tensor {
  const { dtype, device } = rows;
  const compute = computeOn(device, dtype);
  const sums = scatterRows(cast(rows, compute), indices, shape);
  if (dtype === "u8") return cast(cast(sums, "i32"), dtype); // of which it takes the low byte
  return cast(compute === "f64" && dtype === "i32" ? inWords(WRAP, sums) : sums, dtype);
}

/** Numbers as rows of one, as in PyTorch. The result has the shape of the first tensor. */
export function asRows<Tensors extends readonly Tensor[]>(
  tensors: readonly [...Tensors],
  body: (...rows: Tensors) => Tensor,
): Tensor {
  const rows = () => tensors.map((x) => (x.shape.length === 0 ? reshape(x, [1]) : x)) as unknown as Tensors;
  return tidy(() => reshape(body(...rows()), tensors[0]!.shape));
}

const swapped = (shape: Shape, axis: number) => shape.with(0, shape[axis]!).with(axis, shape[0]!);

/** The start of a source, as far as there are indices. */
export function fitted(source: Tensor, shape: Shape): Tensor {
  return shape.reduce((rest, extent, i) => (extent === rest.shape[i] ? rest : slice(rest, 0, extent, i)), source);
}

/** @returns the axis from 0 on */
export function checkOperands(where: string, x: Tensor, axis: number, indices: Tensor, source: Tensor): number {
  checkTensor(where, x);
  const isTensor = indices instanceof Tensor;
  check(
    isTensor,
    "BAD_ARGUMENT",
    where,
    () => `indices must be a Tensor, got ${show(indices)}.`,
    `It takes ${where}(x, axis, indices, source).`,
  );
  checkTensor(where, indices, "indices");
  checkIndexDType(where, indices);
  checkTensor(where, source, "source");
  checkDevice(where, [x, indices, source]);
  check(
    source.dtype === x.dtype,
    "BAD_DTYPE",
    where,
    () => `the source must have x's dtype ${x.dtype}, got ${source.dtype}.`,
    "Cast it with to().",
  );
  return axisOfElements(where, axis, x.shape);
}

export function checkExtents(where: string, x: Tensor, axis: number, indices: Tensor, source: Tensor): void {
  const { shape } = indices;
  const rank = x.shape.length;
  check(
    shape.length === rank &&
      source.shape.length === rank &&
      shape.every((extent, i) => extent <= source.shape[i]! && (i === axis || extent <= x.shape[i]!)),
    "BAD_SHAPE",
    where,
    () =>
      `indices must fit into x ${showShape(x.shape)} along all axes but ${axis} and into the source ${showShape(source.shape)}, got ${showShape(shape)}.`,
    "indexAdd takes one index for each slice.",
  );
  checkIndices(where, indices, x.shape[axis]!);
}
