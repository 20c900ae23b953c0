/** Scales of axes: from values to shares of the picture, and round numbers to label. */
import { type Axis, type Chart, type Series, xOf } from "./chart";

export interface Scale {
  readonly range: readonly [number, number];
  readonly ticks: readonly number[];
  /** From 0 to 1 within the range. NaN for what a logarithm cannot show. */
  readonly shareOf: (value: number) => number;
  readonly valueOf: (share: number) => number;
  readonly format: (value: number) => string;
}

/** As English does, without Intl, which takes long to open. */
export function format(value: number): string {
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-4)) return value.toExponential(2).replace(/\.?0*e\+?/, "e");
  const [whole, ...fraction] = String(Number(value.toPrecision(size >= 1000 ? 7 : 4))).split(".");
  return [whole!.replace(/\B(?=(\d{3})+$)/g, ","), ...fraction].join(".");
}

/** The scales of both axes. */
export function scalesOf(chart: Chart): { x: Scale; y: Scale } {
  const isHistogram = ({ as }: Series) => as === "bars" && chart.y.rows === undefined;
  const xs = chart.series.flatMap((one) =>
    one.x === undefined ? Array.from(one.y, (_, i) => xOf(one, i)) : Array.from(one.x),
  );
  const ys = chart.series.flatMap(({ y }) => Array.from(y));
  if (chart.series.some(isHistogram)) ys.push(0);
  if (chart.y.rows && !chart.x.log) xs.push(0);
  const rows = chart.y.rows && ([chart.y.rows.length - 0.5, -0.5] as const);
  return {
    x: scaleOf(chart.x, xs, chart.y.rows !== undefined),
    y: rows ? linear(rows, [], String) : scaleOf(chart.y, ys, chart.y.range === undefined),
  };
}

function scaleOf(axis: Axis, values: readonly number[], isRounded: boolean): Scale {
  const shown = values.filter((value) => Number.isFinite(value) && (!axis.log || value > 0));
  const nothing = axis.log ? ([0.1, 1] as const) : ([0, 1] as const);
  let [low, high] = axis.range ?? (shown.length > 0 ? boundsOf(shown) : nothing);
  if (low === high)
    [low, high] = axis.log ? [low / 2, low * 2] : [low - (Math.abs(low) / 2 || 1), low + (Math.abs(low) / 2 || 1)];
  const text = axis.percent ? (value: number) => `${format(100 * value)} %` : format;
  if (axis.ticks) return linear([low, high], axis.ticks, text);
  if (axis.log) return logarithmic([low, high], text);
  const step = stepOf(high - low);
  if (isRounded) [low, high] = [Math.floor(low / step + 1e-9) * step, Math.ceil(high / step - 1e-9) * step];
  return linear([low, high], multiples(step, low, high), text);
}

function boundsOf(values: readonly number[]): [low: number, high: number] {
  let [low, high] = [values[0]!, values[0]!];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

function linear([low, high]: readonly [number, number], ticks: readonly number[], text: Scale["format"]): Scale {
  const shareOf = (value: number) => (value - low) / (high - low);
  return { range: [low, high], ticks, shareOf, valueOf: (share) => low + share * (high - low), format: text };
}

function logarithmic([low, high]: readonly [number, number], text: Scale["format"]): Scale {
  const [from, to] = [Math.log10(low), Math.log10(high)];
  const decades = multiples(Math.max(1, Math.ceil((to - from) / 7)), Math.floor(from), to).map((power) => 10 ** power);
  const finer = decades.flatMap((decade) => [decade, 2 * decade, 5 * decade]);
  const within = (ticks: readonly number[]) => ticks.filter((tick) => tick >= low * 0.9999 && tick <= high * 1.0001);
  const choices = [decades, finer, multiples(stepOf(high - low), low, high)].map(within);
  return {
    range: [low, high],
    ticks: choices.find((ticks) => ticks.length >= 3) ?? choices[2]!,
    shareOf: (value) => (value > 0 ? (Math.log10(value) - from) / (to - from) : Number.NaN),
    valueOf: (share) => 10 ** (from + share * (to - from)),
    format: text,
  };
}

/** 1, 2 or 5 times a power of ten, for about six ticks. */
function stepOf(span: number): number {
  const power = 10 ** Math.floor(Math.log10(span / 6));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= span / 6.001)!;
}

function multiples(step: number, low: number, high: number): number[] {
  const [first, last] = [Math.ceil(low / step - 1e-9), Math.floor(high / step + 1e-9)];
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}
