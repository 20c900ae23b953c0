/** Making tensors of numbers in sequence, and unit matrices. */

import { CREATE_OPTIONS, type CreateOptions, marked, room, upload } from "./create";
import { deviceOf } from "./device/registry";
import { checkValue } from "./errors/check-value";
import { check } from "./errors/errors";
import { checkOptions } from "./errors/options";
import { show } from "./errors/show";
import type { Tensor } from "./tensor/tensor";
import { checkDType, rangeOf } from "./values/dtype";
import { narrow } from "./values/half";
import { checkRange } from "./values/literal";

/**
 * start, start + step, ... before end: i32 if all of them are integers, else f32. One number is the end, from 0 on.
 *
 * @throws OptError BAD_ARGUMENT unless the step leads from start to end; BAD_DTYPE, UNKNOWN_DEVICE
 * @example
 * arange(3); // [0, 1, 2]
 * arange(1, 2, 0.25, { dtype: "f64" }); // [1, 1.25, 1.5, 1.75]
 */
export function arange(end: number, options?: CreateOptions): Tensor;
export function arange(start: number, end: number, options?: CreateOptions): Tensor;
export function arange(start: number, end: number, step: number, options?: CreateOptions): Tensor;
export function arange(...given: (number | CreateOptions | undefined)[]): Tensor {
  const numbers = given.filter((value) => typeof value === "number");
  const last = given.slice(numbers.length).find((value) => value !== undefined);
  const options = (last ?? {}) as CreateOptions;
  checkOptions("arange", options, CREATE_OPTIONS);
  const [start, end, step] = numbers.length < 2 ? [0, numbers[0], 1] : [numbers[0]!, numbers[1]!, numbers[2] ?? 1];
  const count = end === undefined ? Number.NaN : Math.ceil((end - start) / step);
  check(
    numbers.length <= 3 && count >= 0 && Number.isFinite(count) && step !== 0,
    "BAD_ARGUMENT",
    "arange",
    () => `needs finite numbers with a step that leads from start to end, got ${numbers.join(", ")}.`,
    "For example arange(10), arange(2, 10), arange(10, 0, -2).",
  );
  const { dtype = numbers.every(Number.isInteger) ? "i32" : "f32" } = options;
  const values = room("arange", count, Float64Array).map((_, i) => start + i * step);
  return made("arange", values, [count], { ...options, dtype });
}

/** Numbers that the host knows: constants of a compiled function. */
function made(where: string, values: Float64Array, shape: readonly number[], given: CreateOptions): Tensor {
  const { dtype = "f32", device, requiresGrad } = given;
  checkDType(where, dtype);
  checkRange(where, values, dtype);
  return marked(upload(narrow(values, dtype), shape, dtype, deviceOf(where, device)), requiresGrad);
}

/**
 * `steps` numbers from start to end, both included, at equal distances; f32 by default. Integers are cut, as in PyTorch.
 *
 * @throws OptError BAD_ARGUMENT unless `steps` is a count; BAD_DTYPE, UNKNOWN_DEVICE
 * @example
 * linspace(0, 1, 5); // [0, 0.25, 0.5, 0.75, 1]
 */
export function linspace(start: number, end: number, steps: number, options: CreateOptions = {}): Tensor {
  checkOptions("linspace", options, CREATE_OPTIONS);
  const areFinite = Number.isFinite(start) && Number.isFinite(end);
  check(
    areFinite,
    "BAD_ARGUMENT",
    "linspace",
    () => `start and end must be finite numbers, got ${show(start)} and ${show(end)}.`,
    "For example linspace(0, 1, 5).",
  );
  checkCount("linspace", "steps", steps);
  // Integers begin and end at integers, as in PyTorch.
  const [first, last] = [start, end].map(rangeOf(options.dtype ?? "f32") ? Math.trunc : (x) => x) as [number, number];
  const step = steps > 1 ? (last - first) / (steps - 1) : 0;
  // From the nearer end, so that both are exact.
  const at = (i: number) => (i < steps / 2 ? first + step * i : last - step * (steps - 1 - i));
  const values = room("linspace", steps, Float64Array).map((_, i) => at(i));
  return made("linspace", values, [steps], options);
}

/**
 * The frequencies of the elements of `fft`: 0, 1, ..., then the negative ones up to -1, divided by n times `spacing`; f32 by default.
 *
 * @param spacing between samples. Default 1
 * @throws OptError BAD_ARGUMENT; BAD_DTYPE, UNKNOWN_DEVICE
 * @example
 * fftfreq(5); // [0, 0.2, 0.4, -0.4, -0.2]
 */
export function fftfreq(n: number, spacing = 1, options: CreateOptions = {}): Tensor {
  return frequencies(
    "fftfreq",
    n,
    spacing,
    options,
    () => n,
    (i) => (i < n / 2 ? i : i - n),
  );
}

/**
 * The frequencies of the elements of `rfft`: 0, 1, ..., floor(n/2), divided by n times `spacing`; f32 by default.
 *
 * @param spacing between samples. Default 1
 * @throws OptError BAD_ARGUMENT; BAD_DTYPE, UNKNOWN_DEVICE
 * @example
 * rfftfreq(5); // [0, 0.2, 0.4]
 */
export function rfftfreq(n: number, spacing = 1, options: CreateOptions = {}): Tensor {
  return frequencies(
    "rfftfreq",
    n,
    spacing,
    options,
    () => Math.floor(n / 2) + 1,
    (i) => i,
  );
}

function frequencies(
  where: string,
  n: number,
  spacing: number,
  options: CreateOptions,
  length: () => number,
  at: (i: number) => number,
): Tensor {
  checkOptions(where, options, CREATE_OPTIONS);
  checkValue(Number.isInteger(n) && n > 0, where, "n", "a whole number from 1 on", n);
  const isSpacing = Number.isFinite(spacing) && spacing !== 0;
  checkValue(
    isSpacing,
    where,
    "spacing",
    "a finite number other than 0",
    spacing,
    "It is the time between two samples.",
  );
  const values = room(where, length(), Float64Array).map((_, i) => at(i) / (n * spacing));
  return made(where, values, [values.length], options);
}

/**
 * The unit matrix [n, m]: ones on the diagonal, zeros elsewhere; f32 by default, and m is n by default.
 *
 * @throws OptError BAD_ARGUMENT unless n and m are counts; BAD_DTYPE, UNKNOWN_DEVICE
 * @example
 * eye(2); // [[1, 0], [0, 1]]
 */
export function eye(n: number, options?: CreateOptions): Tensor;
export function eye(n: number, m: number, options?: CreateOptions): Tensor;
export function eye(n: number, ...rest: (number | CreateOptions | undefined)[]): Tensor {
  const [m, options = {}] = typeof rest[0] === "number" ? (rest as [number, CreateOptions?]) : [n, rest[0] ?? rest[1]];
  checkOptions("eye", options, CREATE_OPTIONS);
  checkCount("eye", "n", n);
  checkCount("eye", "m", m);
  const values = room("eye", n * m, Float64Array);
  for (let i = 0; i < Math.min(n, m); i++) values[i * (m + 1)] = 1;
  return made("eye", values, [n, m], options as CreateOptions);
}

export type IndicesOptions = Pick<CreateOptions, "device">;

/**
 * Where the lower triangle of a matrix [rows, columns] has elements, row by row: i32 [2, count], rows above columns. For
 * `x.at(i.select(0, 0), i.select(0, 1))`.
 *
 * @throws OptError BAD_ARGUMENT unless rows and columns are counts; UNKNOWN_DEVICE
 * @example
 * trilIndices(2, 2); // [[0, 1, 1], [0, 0, 1]]
 */
export function trilIndices(rows: number, columns: number, offset = 0, options: IndicesOptions = {}): Tensor {
  return triangle("trilIndices", rows, columns, offset, options, (distance) => distance <= offset);
}

/**
 * The same of the upper triangle.
 *
 * @throws OptError BAD_ARGUMENT unless rows and columns are counts; UNKNOWN_DEVICE
 * @example
 * triuIndices(2, 2); // [[0, 0, 1], [0, 1, 1]]
 */
export function triuIndices(rows: number, columns: number, offset = 0, options: IndicesOptions = {}): Tensor {
  return triangle("triuIndices", rows, columns, offset, options, (distance) => distance >= offset);
}

function triangle(
  where: string,
  rows: number,
  columns: number,
  offset: number,
  options: IndicesOptions,
  isIn: (distance: number) => boolean,
): Tensor {
  checkCount(where, "rows", rows);
  checkCount(where, "columns", columns);
  checkValue(Number.isInteger(offset), where, "offset", "an integer", offset, "0 is the main diagonal.");
  checkOptions(where, options, { device: CREATE_OPTIONS.device });
  const places = room(where, rows * columns, Float64Array);
  let count = 0;
  for (let i = 0; i < rows * columns; i++) if (isIn((i % columns) - Math.floor(i / columns))) places[count++] = i;
  const found = places.subarray(0, count);
  const both = [...found.map((at) => Math.floor(at / columns)), ...found.map((at) => at % columns)];
  return made(where, Float64Array.from(both), [2, count], { ...options, dtype: "i32" });
}

function checkCount(where: string, name: string, count: unknown): void {
  const isCount = Number.isInteger(count) && (count as number) >= 0;
  checkValue(isCount, where, name, "an integer >= 0", count, "For example 3.");
}
