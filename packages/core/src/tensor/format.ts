/** Tensors as text, as PyTorch prints them: aligned, four digits, long axes cut to their edges. */
import type { DType } from "../values/dtype";
import { isFloat } from "../values/dtype";
import { denseStrides, type Shape, sizeOf } from "../values/shape";

/** Larger tensors are cut. */
const THRESHOLD = 1000;
const EDGE = 3;
const LINE = 80;

/** Elements that lie together. */
export interface Run {
  readonly start: number;
  readonly count: number;
}

type Cell = string | null;

/** The positions shown along an axis; null where some are left out. */
function shown(extent: number, cut: boolean): (number | null)[] {
  const all = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);
  if (!cut || extent <= 2 * EDGE) return all(0, extent);
  return [...all(0, EDGE), null, ...all(extent - EDGE, extent)];
}

/** What must be read to show a tensor of that shape, in order. */
export function runsOf(shape: Shape): Run[] {
  const size = sizeOf(shape);
  if (size <= THRESHOLD) return size === 0 ? [] : [{ start: 0, count: size }];
  const strides = denseStrides(shape);
  const runs: Run[] = [];
  const visit = (axis: number, start: number): void => {
    const extent = shape[axis]!;
    if (axis === shape.length - 1) {
      if (extent <= 2 * EDGE) runs.push({ start, count: extent });
      else runs.push({ start, count: EDGE }, { start: start + extent - EDGE, count: EDGE });
      return;
    }
    for (const at of shown(extent, true)) if (at !== null) visit(axis + 1, start + at * strides[axis]!);
  };
  visit(0, 0);
  return runs;
}

/** The text of the values of all runs. */
export function format(shape: Shape, dtype: DType, values: readonly number[]): string {
  const write = writerOf(dtype, values);
  if (shape.length === 0) return write(values[0]!);
  const cut = sizeOf(shape) > THRESHOLD;
  const texts = values.map(write);
  const width = texts.reduce((most, text) => Math.max(most, text.length), 0);
  let next = 0;
  const visit = (axis: number): string => {
    const indent = " ".repeat(axis + 1);
    const positions = shown(shape[axis]!, cut);
    if (axis === shape.length - 1) {
      return `[${lines(
        positions.map((at): Cell => (at === null ? null : texts[next++]!.padStart(width))),
        width,
        indent,
      )}]`;
    }
    const separator = `,${"\n".repeat(shape.length - 1 - axis)}${indent}`;
    return `[${positions.map((at) => (at === null ? "..." : visit(axis + 1))).join(separator)}]`;
  };
  return sizeOf(shape) === 0 ? "[]" : visit(0);
}

function lines(cells: readonly Cell[], width: number, indent: string): string {
  const perLine = Math.max(1, Math.floor((LINE - indent.length) / (width + 2)));
  const rows: string[] = [];
  for (let i = 0; i < cells.length; i += perLine) {
    const row = cells.slice(i, i + perLine).map((cell) => cell ?? " ...");
    rows.push(row.join(", "));
  }
  return rows.join(`,\n${indent}`);
}

/** One form for all elements: whole, with four digits, or with exponents where magnitudes lie far apart. */
function writerOf(dtype: DType, values: readonly number[]): (value: number) => string {
  if (dtype === "bool") return (value) => String(value !== 0);
  if (!isFloat(dtype)) return String;
  const magnitudes = values.filter((value) => Number.isFinite(value) && value !== 0).map(Math.abs);
  const largest = magnitudes.reduce((a, b) => Math.max(a, b), 0);
  const smallest = magnitudes.reduce((a, b) => Math.min(a, b), largest);
  const whole = magnitudes.every(Number.isInteger);
  const apart = largest > 1000 * smallest || largest > 1e8 || (!whole && smallest < 1e-4);
  return (value) => {
    if (Number.isNaN(value)) return "nan";
    if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
    if (apart && magnitudes.length > 0) return value.toExponential(4).replace(/e([+-])(\d)$/, "e$10$2");
    const sign = Object.is(value, -0) ? "-" : "";
    return sign + (whole ? `${value}.` : value.toFixed(4));
  };
}
