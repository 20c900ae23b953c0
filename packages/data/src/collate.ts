/** Samples as one batch. */
import { check, concat, type NestedArray, show, Tensor, type TypedArray, tensor, tidy } from "@opt/core";
import { kindOf } from "./rows";

/** A field of a batch: numbers, booleans and arrays of them become a tensor with one more axis in front; text, and what has methods (a Date, a Map), becomes a list. */
export type Field<T> = T extends Tensor | TypedArray | number | boolean | NestedArray
  ? Tensor
  : T extends readonly unknown[]
    ? { -readonly [K in keyof T]: Field<T[K]> }
    : T extends object
      ? [Extract<T[keyof T], (...inputs: never[]) => unknown>] extends [never]
        ? { -readonly [K in keyof T]: Field<T[K]> }
        : T[]
      : T[];

/** A batch of samples that are a tuple or an object: of each of their fields. */
export type Collated<Sample> = Sample extends Tensor | TypedArray
  ? Tensor
  : Sample extends readonly unknown[]
    ? { -readonly [K in keyof Sample]: Field<Sample[K]> }
    : Field<Sample>;

/**
 * Samples as one batch, field by field. A sample is a tensor, a typed array, a number, a tuple ([input, label]) or an object of those;
 * inside a tuple or object an array of numbers is data. Numbers become f32, typed arrays and tensors keep their dtype, text stays a list.
 *
 * @throws OptError BAD_SHAPE if samples differ in shape or fields; BAD_ARGUMENT without a sample
 * @example
 * const [x, y] = collate([[[1, 2], 0], [[3, 4], 1]]); // x [2, 2], y [2]
 */
export function collate<Sample>(samples: readonly Sample[]): Collated<Sample> {
  const isList = Array.isArray(samples);
  check(
    isList,
    "BAD_ARGUMENT",
    WHERE,
    () => `needs an array of samples, got ${show(samples)}.`,
    "For example [[x, 0]].",
  );
  const [first] = samples;
  const isTuple = Array.isArray(first);
  return (
    isTuple ? tupleOf(samples as unknown as readonly unknown[][], "", 0) : fieldOf(samples, "", 0)
  ) as Collated<Sample>;
}

const WHERE = "collate";

/** How deep samples may be nested: as deep as arrays that become a tensor. */
const DEEPEST = 64;

function fieldOf(values: readonly unknown[], path: string, depth: number): unknown {
  const isShallow = depth < DEEPEST;
  check(isShallow, "BAD_SHAPE", WHERE, () => `samples may be nested ${DEEPEST} deep, got more.`, "Check for a cycle.");
  const [first] = values;
  const areThere = values.length > 0 && values.every((value) => value !== undefined && value !== null);
  check(
    areThere,
    "BAD_ARGUMENT",
    WHERE,
    () => `there must be samples${path && `, at ${path}`}, got ${show(values)}.`,
    "The dataset may have fewer than its length.",
  );
  if (first instanceof Tensor) return stacked(values as readonly Tensor[], path);
  if (ArrayBuffer.isView(first) && !(first instanceof DataView)) return joined(values as readonly TypedArray[], path);
  if (isNumeric(first)) {
    for (const value of values) checkKind(isNumeric(value), first, value, path);
    return tensor(values as NestedArray);
  }
  if (Array.isArray(first)) return tupleOf(values as readonly unknown[][], path, depth);
  if (isObject(first)) return objectOf(values, first, path, depth);
  for (const value of values) checkKind(typeof value === typeof first, first, value, path);
  return [...values];
}

function tupleOf(samples: readonly unknown[][], path: string, depth: number): unknown[] {
  const { length } = samples[0]!;
  for (const sample of samples) {
    const isAlike = Array.isArray(sample) && sample.length === length;
    checkKind(isAlike, samples[0], sample, path);
  }
  return samples[0]!.map((_, i) =>
    fieldOf(
      samples.map((sample) => sample[i]),
      `${path}[${i}]`,
      depth + 1,
    ),
  );
}

function objectOf(
  samples: readonly unknown[],
  first: Record<string, unknown>,
  path: string,
  depth: number,
): Record<string, unknown> {
  const names = Object.keys(first);
  for (const sample of samples) {
    const isAlike = isObject(sample) && String(Object.keys(sample).sort()) === String([...names].sort());
    checkKind(isAlike, first, sample, path);
  }
  const field = (name: string) =>
    fieldOf(
      samples.map((sample) => (sample as Record<string, unknown>)[name]),
      `${path}.${name}`,
      depth + 1,
    );
  return Object.fromEntries(names.map((name) => [name, field(name)]));
}

function stacked(tensors: readonly Tensor[], path: string): Tensor {
  for (const each of tensors) {
    const isAlike = each instanceof Tensor && String(each.shape) === String(tensors[0]!.shape);
    checkKind(isAlike, tensors[0], each, path);
  }
  return tidy(() => concat(tensors.map((each) => each.reshape([1, ...each.shape]))));
}

function joined(arrays: readonly TypedArray[], path: string): Tensor {
  const { length } = arrays[0]!;
  const kind = kindOf(arrays[0]!);
  const all = new kind(arrays.length * length);
  arrays.forEach((array, i) => {
    checkKind(array.length === length && kindOf(array) === kind, arrays[0], array, path);
    all.set(array, i * length);
  });
  return tensor(all, { shape: [arrays.length, length] });
}

function isNumeric(value: unknown, depth = 0): boolean {
  if (Array.isArray(value))
    return depth < DEEPEST && value.length > 0 && value.every((item) => isNumeric(item, depth + 1));
  return typeof value === "number" || typeof value === "boolean";
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function checkKind(isAlike: boolean, first: unknown, other: unknown, path: string): void {
  check(
    isAlike,
    "BAD_SHAPE",
    WHERE,
    () => `samples must be alike${path && `, at ${path}`}, got ${show(first)} and ${show(other)}.`,
    "Pad or cut them, or pass a collate of your own.",
  );
}
