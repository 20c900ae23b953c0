/** Numbers, nested arrays and typed arrays as the stored elements of a dtype. */

import { checkValue } from "../errors/check-value";
import { check } from "../errors/errors";
import { show } from "../errors/show";
import { type DType, dtypeOfArray, rangeOf, type TypedArray } from "./dtype";
import { narrow } from "./half";
import { type Shape, showShape } from "./shape";

export type NestedArray = readonly (number | boolean | NestedArray)[];
export type TensorData = number | boolean | NestedArray | TypedArray | Uint8ClampedArray;

/** Stored elements (a typed array that already is of the dtype is returned itself), with the shape that the nesting shows and the dtype asked for or implied. */
export function flatten(
  where: string,
  data: TensorData,
  dtype?: DType,
): { elements: TypedArray; shape: Shape; dtype: DType } {
  check(
    dtype !== "c64",
    "BAD_DTYPE",
    where,
    () => "numbers are real, got dtype c64.",
    "Use viewAsComplex(parts), and viewAsReal(x).set(parts).",
  );
  if (ArrayBuffer.isView(data)) {
    const own = dtypeOfArray(data);
    const target = dtype ?? own;
    if (own !== target) checkRange(where, data as TypedArray, target);
    const elements = own === target ? (data as TypedArray) : narrow(data as TypedArray, target);
    return { elements, shape: [data.length], dtype: target };
  }
  const values: number[] = [];
  const shape = Array.isArray(data) ? shapeOf(where, data) : [];
  let booleans = true;
  const visit = (value: unknown, depth: number): void => {
    if (depth < shape.length) {
      const got = () => (Array.isArray(value) ? `length ${value.length}` : show(value));
      check(
        Array.isArray(value) && value.length === shape[depth],
        "BAD_SHAPE",
        where,
        () => `nested arrays must be rectangular (${showShape(shape)}), got ${got()} at depth ${depth}.`,
        "Make all rows equally long.",
      );
      for (const item of value) visit(item, depth + 1);
      return;
    }
    checkValue(
      typeof value === "number" || typeof value === "boolean",
      where,
      "elements",
      "numbers or booleans",
      value,
      "Convert them first.",
    );
    booleans &&= typeof value === "boolean";
    values.push(Number(value));
  };
  visit(data, 0);
  const target = dtype ?? (booleans && values.length > 0 ? "bool" : "f32");
  checkRange(where, values, target);
  return { elements: narrow(values, target), shape, dtype: target };
}

/** Checks that numbers fit an integer dtype. Fractions are cut, but a number beyond the range would become another one. @throws OptError BAD_ARGUMENT */
export function checkRange(where: string, values: ArrayLike<number>, dtype: DType): void {
  const range = rangeOf(dtype);
  if (range === undefined) return;
  const [low, high] = range;
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    check(
      value >= low && value <= high, // false for NaN
      "BAD_ARGUMENT",
      where,
      () => `${dtype} holds integers from ${low} to ${high}, got ${value}.`,
      "Use a wider dtype, or cast a tensor with to(), which saturates.",
    );
  }
}

function shapeOf(where: string, data: NestedArray): number[] {
  const shape: number[] = [];
  for (let level: unknown = data; Array.isArray(level); level = level[0]) {
    shape.push(level.length);
    const isShallow = shape.length <= 64;
    check(isShallow, "BAD_SHAPE", where, () => "arrays may be nested 64 deep, got more.", "Check for a cycle.");
  }
  return shape;
}
