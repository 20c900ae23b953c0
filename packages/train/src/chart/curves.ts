/** Curves by name as charts: those of shares have an axis of their own. */
import type { Axis, Chart } from "./chart";
import { draw } from "./draw";

const SHARES = /(^|_|\b)(acc|accuracy|f1|precision|recall)$/i;

/** Whether a curve of this name is a share of 1. */
export const isShare = (name: string): boolean => SHARES.test(name);

/** The axes of curves, and where they are. */
export interface CurveAxes {
  readonly x?: Partial<Axis>;
  readonly y?: Partial<Axis>;
  /** Where the values are. By default 1, 2, 3 ... */
  readonly at?: ArrayLike<number> | undefined;
}

/** Of a picture, in its pixels. */
export interface Size {
  readonly width?: number | undefined;
  readonly height?: number | undefined;
}

/** One chart, or two where some curves are shares such as the accuracy. */
export function chartsOf(
  curves: Readonly<Record<string, ArrayLike<number>>>,
  title: string,
  { x, y, at }: CurveAxes = {},
  { width = 640, height }: Size = {},
): Chart[] {
  const named = Object.entries(curves);
  const groups = [named.filter(([name]) => !isShare(name)), named.filter(([name]) => isShare(name))];
  const shown = groups.filter(({ length }) => length > 0);
  return shown.map((group) => {
    const percent = group === groups[1];
    return {
      title,
      x: { label: "step", ...x },
      y: percent ? { ...y, label: labelOf(group), percent } : { label: labelOf(group), ...y },
      series: group.map(([name, values]) => ({ name, y: values, ...(at && { x: at }) })),
      width,
      height: Math.round((height ?? 160 + 160 * shown.length) / shown.length),
    };
  });
}

/** What the names of curves share: "loss" of "loss" and "val_loss". */
function labelOf(group: readonly (readonly [name: string, values: ArrayLike<number>])[]): string {
  const [first = "", ...others] = group.map(([name]) => name.replace(/^val_/, ""));
  return others.every((name) => name === first) ? first.replaceAll("_", " ") : "value";
}

/** Charts below each other as one picture. */
export function stacked(charts: readonly Chart[]): string {
  const [first] = charts;
  if (charts.length === 1) return draw(first!);
  const { width = 640 } = first!;
  let top = 0;
  const parts = charts.map((chart) => {
    const part = draw(chart).replace("<svg ", `<svg y="${top}" `);
    top += chart.height ?? 320;
    return part;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" class="opt-chart" viewBox="0 0 ${width} ${top}" width="${width}" height="${top}">${parts.join("")}</svg>`;
}
