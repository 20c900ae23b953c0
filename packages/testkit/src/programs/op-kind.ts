/** What programs know of an op, and the shapes and dtypes that operands have together. */
import type { DType, Tensor } from "@opt/core";
import { isFloat } from "./numbers";
import type { Options, Shape, Spec } from "./program";

type Operand = Tensor | number;

export interface OpKind {
  run(operands: readonly Operand[], options: Options): Tensor;
  /** From the specs of the tensor operands. */
  spec(tensors: readonly Spec[], options: Options, numbers: readonly number[]): Spec;
  /** The result may be the operand's memory. */
  readonly view?: true;
}

const ORDER: readonly DType[] = ["bool", "u8", "i32", "f16", "bf16", "f32", "f64"];

export function promote(a: DType, b: DType): DType {
  if ((a === "f16" && b === "bf16") || (a === "bf16" && b === "f16")) return "f32";
  return ORDER.indexOf(a) >= ORDER.indexOf(b) ? a : b;
}

/** The shape of several together; null where they do not fit. */
export function broadcast(shapes: readonly Shape[]): Shape | null {
  const rank = Math.max(...shapes.map((shape) => shape.length));
  const result: number[] = [];
  for (let axis = -rank; axis < 0; axis++) {
    const stretched = new Set(shapes.map((shape) => shape.at(axis) ?? 1).filter((extent) => extent !== 1));
    if (stretched.size > 1) return null;
    result.push(stretched.values().next().value ?? 1);
  }
  return result;
}

export const floatOf = (dtype: DType): DType => (isFloat(dtype) ? dtype : "f32");

export function together(tensors: readonly Spec[], numbers: readonly number[], result?: "float" | "bool"): Spec {
  const shape = broadcast(tensors.map((tensor) => tensor.shape)) ?? [];
  if (result === "bool") return { shape, dtype: "bool" };
  const all = tensors.map((tensor) => tensor.dtype).reduce(promote);
  // What has no dimensions only makes floats of integers, and integers of booleans.
  const own = tensors.filter((tensor) => tensor.shape.length > 0).map((tensor) => tensor.dtype);
  const decided = own.length > 0 ? own.reduce(promote) : all;
  const dtype = isFloat(decided) || (decided !== "bool" && !isFloat(all)) ? decided : all;
  if (isFloat(dtype)) return { shape, dtype };
  if (result === "float" || !numbers.every(Number.isInteger)) return { shape, dtype: "f32" };
  return { shape, dtype: dtype === "bool" ? "i32" : dtype };
}

/** The axes of a reduction, counted from the front. */
export const axesOf = (shape: Shape, { axis }: Options): readonly number[] =>
  (axis === undefined ? shape.map((_, i) => i) : ([axis].flat() as number[])).map((a) =>
    a < 0 ? a + shape.length : a,
  );

export function reduced(shape: Shape, options: Options): Shape {
  const axes = axesOf(shape, options);
  return options.keepDim
    ? shape.map((extent, i) => (axes.includes(i) ? 1 : extent))
    : shape.filter((_, i) => !axes.includes(i));
}
