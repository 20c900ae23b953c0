/** Draws a chart as SVG text, without a DOM: the same in a page, in a report and in a file. */
import { type Chart, type Series, xOf } from "./chart";
import { type Scale, scalesOf } from "./scale";
import { describe } from "./words";

const LIGHT = ["#1f57b3", "#b45309", "#15803d", "#be123c", "#6d28d9", "#0e7490"];
const DARK = ["#8db9ff", "#f5b14c", "#86d98f", "#ff8098", "#c4a7ff", "#5fd3e6"];
const FAINT = ["#a3adba", "#5f6b7a"] as const;
/** Series are told apart without colors, too. */
const DASHES = ["", "8 4", "2 4", "12 4 2 4", "5 2", "16 6"];
const MARKS = [
  "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
  "M-4 -4H4V4H-4Z",
  "M0 -5L5 4H-5Z",
  "M0 -5.5L5.5 0L0 5.5L-5.5 0Z",
  "M-1.5 -5H1.5V-1.5H5V1.5H1.5V5H-1.5V1.5H-5V-1.5H-1.5Z",
  "M0 5L5 -4H-5Z",
];
const MARKS_PER_LINE = 5;
const LETTER = 6.7;
const LEGEND_ROW = 20;

/** A chart is dark where its page is. Alone in a file it asks the system. */
const STYLE = `<style>.opt-chart:root{color-scheme:light dark}.opt-chart:root,.opt-chart[style]{color:light-dark(#1f2328,#e6edf3)}${[
  ...LIGHT.map((light, i) => [String(i), light, DARK[i]!] as const),
  ["faint", ...FAINT] as const,
]
  .map(([name, light, dark]) => {
    const color = `light-dark(${light},${dark})`;
    return `.opt-chart .s-${name}{stroke:${color}}.opt-chart .f-${name}{fill:${color}}`;
  })
  .join("")}</style>`;

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
const place = (number: number) => Number(number.toFixed(1));
const text = (x: number, y: number, words: string, more = "") =>
  `<text x="${place(x)}" y="${place(y)}" ${more}>${escaped(words)}</text>`;

/** Where values are drawn, in the picture's pixels. */
export interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** Where a chart's values are drawn. */
export function boxOf(chart: Chart): Box {
  const { width = 640, height = 320, heading } = chart;
  const { x, y } = scalesOf(chart);
  const widest = Math.max(...(chart.y.rows ?? y.ticks.map(y.format)).map(({ length }) => length), 1);
  const left = Math.min(width * 0.4, chart.y.rows ? widest * LETTER + 16 : Math.max(60, widest * LETTER + 34));
  const top = 14 + (heading === undefined ? 0 : 46) + LEGEND_ROW * legendRows(chart).length;
  const labels = chart.series.flatMap(({ as, labels = [] }) => (as === "points" ? [] : labels));
  const right =
    14 + Math.max(0, LETTER * (x.format(x.range[1]).length / 2) - 8, ...labels.map(({ length }) => LETTER * length));
  return { left, top, width: width - left - right, height: height - top - 44 };
}

/** Draws a chart as SVG text. */
export function draw(chart: Chart): string {
  const { width = 640, height = 320, heading, scheme } = chart;
  const scheming = scheme ? ` style="color-scheme:${scheme}"` : "";
  const head = `<svg xmlns="http://www.w3.org/2000/svg" class="opt-chart" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(describe(chart))}" font-family="system-ui, sans-serif" font-size="12" fill="currentColor"${scheming}>`;
  const box = boxOf(chart);
  const { x, y } = scalesOf(chart);
  const [right, bottom] = [box.left + box.width, box.top + box.height];
  const at = {
    x: (value: number) => box.left + x.shareOf(value) * box.width,
    y: (value: number) => bottom - y.shareOf(value) * box.height,
  };
  const rule =
    chart.rule === undefined
      ? ""
      : `<path d="M${place(at.x(chart.rule))} ${box.top}V${bottom}" stroke="currentColor" stroke-dasharray="4 4"/>`;
  const parts = [
    STYLE,
    heading === undefined
      ? ""
      : text(0, 18, chart.title, 'font-size="17" font-weight="600"') + text(0, 38, heading, 'opacity="0.75"'),
    ...axes(chart, x, y, box),
    ...chart.series.map((one, i) => drawSeries(chart, one, i, at, bottom)),
    rule,
    ...legend(chart),
    text((box.left + right) / 2, height - 6, labelOf(chart.x), 'text-anchor="middle" class="axis"'),
  ];
  if (!chart.y.rows)
    parts.push(
      text(
        0,
        0,
        labelOf(chart.y),
        `text-anchor="middle" class="axis" transform="translate(12 ${place((box.top + bottom) / 2)}) rotate(-90)"`,
      ),
    );
  return `${head}${parts.join("")}</svg>`;
}

const labelOf = ({ label, log }: Chart["x"]) => `${label}${log ? " (log scale)" : ""}`;

function axes(chart: Chart, x: Scale, y: Scale, { left, top, width, height }: Box): string[] {
  const [right, bottom] = [left + width, top + height];
  const xs = spaced(x, width).map((tick) => {
    const at = place(left + x.shareOf(tick) * width);
    return `<path d="M${at} ${chart.y.rows ? top : bottom}V${bottom + 4}" stroke="currentColor" opacity="0.25"/>${text(at, bottom + 18, x.format(tick), 'text-anchor="middle" class="tick"')}`;
  });
  const ys = y.ticks.map((tick) => {
    const at = place(bottom - y.shareOf(tick) * height);
    return `<path d="M${left} ${at}H${right}" stroke="currentColor" opacity="0.15"/>${text(left - 6, at + 4, y.format(tick), 'text-anchor="end" class="tick"')}`;
  });
  const rows = (chart.y.rows ?? []).map((name, row) =>
    text(left - 8, bottom - y.shareOf(row) * height + 4, name, 'text-anchor="end" class="tick"'),
  );
  const frame = `<path d="M${left} ${top}V${bottom}${chart.y.rows ? "" : `H${right}`}" fill="none" stroke="currentColor" opacity="0.5"/>`;
  return [...xs, ...ys, ...rows, frame];
}

/** Ticks whose labels have room. */
function spaced({ ticks, format }: Scale, width: number): readonly number[] {
  const needed = (Math.max(...ticks.map((tick) => format(tick).length), 1) + 2) * LETTER * ticks.length;
  const every = Math.max(1, Math.ceil(needed / width));
  return ticks.filter((_, i) => i % every === 0);
}

type At = Readonly<Record<"x" | "y", (value: number) => number>>;

interface Look {
  readonly stroke: string;
  readonly fill: string;
  readonly number: number;
}

function lookOf({ color }: Series, i: number): Look {
  const chosen = color ?? i;
  const number = typeof chosen === "number" ? chosen % LIGHT.length : i % LIGHT.length;
  if (typeof chosen === "string" && chosen !== "faint")
    return { stroke: `stroke="${chosen}"`, fill: `fill="${chosen}"`, number };
  const [name, plain] = chosen === "faint" ? ["faint", FAINT[0]] : [number, LIGHT[number]!];
  return { stroke: `class="s-${name}" stroke="${plain}"`, fill: `class="f-${name}" fill="${plain}"`, number };
}

function drawSeries(chart: Chart, one: Series, i: number, at: At, bottom: number): string {
  const look = lookOf(one, i);
  if (one.as === "bars") return chart.y.rows ? rowBars(chart, one, look, at) : columns(one, look, at, bottom);
  const points = Array.from(one.y, (value, k) => [at.x(xOf(one, k)), at.y(value)] as const);
  const shown = points.filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y));
  const isPoints = one.as === "points";
  const lines = isPoints
    ? ""
    : segments(points)
        .map((part) => polyline(part, look, one.color === "faint"))
        .join("");
  const marked = isPoints ? shown : chart.series.length > 1 && one.color !== "faint" ? some(shown, look.number) : [];
  const marks = marked.map((point) => mark(point, look)).join("");
  return lines + marks + endLabel(shown.at(-1), one.labels?.at(-1), look, chart.width ?? 640);
}

/** On the other side of a point that is too near to the right edge. */
function endLabel(point: Point | undefined, words: string | undefined, { fill }: Look, width: number): string {
  if (point === undefined || words === undefined) return "";
  const isNear = point[0] + 12 + 1.2 * LETTER * words.length > width; // bold
  const anchor = isNear ? 'text-anchor="end" ' : "";
  const more = `${anchor}font-weight="700" ${fill.replace('class="', 'class="label ')}`;
  return text(point[0] + (isNear ? -9 : 9), point[1] + 4, words, more);
}

type Point = readonly [x: number, y: number];

function polyline(points: readonly Point[], { stroke, number }: Look, isFaint: boolean): string {
  const dash = isFaint || DASHES[number] === "" ? "" : ` stroke-dasharray="${DASHES[number]}"`;
  const places = points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
  return `<polyline fill="none" ${stroke} stroke-width="${isFaint ? 1 : 2}" stroke-linejoin="round"${dash} points="${places}"/>`;
}

const mark = ([x, y]: Point, { fill, number }: Look) =>
  `<path ${fill.includes("class") ? fill.replace('class="', 'class="mark ') : fill} d="${MARKS[number]}" transform="translate(${place(x)} ${place(y)})"/>`;

/** A few points that lie elsewhere on each line. */
function some(points: readonly Point[], number: number): readonly Point[] {
  const stride = points.length / MARKS_PER_LINE;
  const first = stride * ((number % 3) / 3);
  return stride <= 2 ? points : points.filter((_, i) => (i - first + stride) % stride < 1);
}

/** Runs without a gap. A long one keeps the lowest and highest point of each pixel. */
function segments(points: readonly Point[]): Point[][] {
  const parts: Point[][] = [[]];
  for (const point of points) {
    if (Number.isFinite(point[0]) && Number.isFinite(point[1])) parts.at(-1)!.push(point);
    else if (parts.at(-1)!.length > 0) parts.push([]);
  }
  return parts.filter(({ length }) => length > 0).map(thinned);
}

function thinned(points: Point[]): Point[] {
  const columns = new Map<number, { low: Point; high: Point }>();
  for (const point of points) {
    const column = Math.round(point[0]);
    const { low, high } = columns.get(column) ?? { low: point, high: point };
    columns.set(column, { low: point[1] > low[1] ? point : low, high: point[1] < high[1] ? point : high });
  }
  if (points.length <= 2 * columns.size) return points;
  return [...columns.values()].flatMap(({ low, high }) =>
    low === high ? [low] : low[0] < high[0] ? [low, high] : [high, low],
  );
}

function columns(one: Series, { fill }: Look, at: At, bottom: number): string {
  return Array.from(one.y, (value, k) => {
    const [from, to, y] = [at.x(xOf(one, k)), at.x(xOf(one, k + 1)), at.y(value)];
    return `<rect ${fill} x="${place(from)}" y="${place(y)}" width="${place(Math.max(1, to - from - 1))}" height="${place(bottom - y)}"/>`;
  }).join("");
}

/** Bars of a row stand below each other where series share it. */
function rowBars({ series, x }: Chart, one: Series, { fill }: Look, at: At): string {
  const row = at.y(1) - at.y(0);
  const sharing = series.filter((other) => Array.from(other.y).some((each) => Array.from(one.y).includes(each)));
  const thickness = (0.7 * row) / sharing.length;
  const from = at.x(x.log ? (x.range?.[0] ?? 0) : 0);
  return Array.from(one.y, (value, k) => {
    const top = at.y(value) - 0.35 * row + thickness * sharing.indexOf(one);
    const end = at.x(xOf(one, k));
    const label = text(end + 6, top + thickness / 2 + 4, one.labels?.[k] ?? "");
    return `<rect ${fill} x="${place(from)}" y="${place(top)}" width="${place(Math.max(1, end - from))}" height="${place(thickness - 1)}" rx="2"/>${label}`;
  }).join("");
}

/** Which series stand in each row of the legend. */
function legendRows({ series, legend: isShown, width = 640 }: Chart): number[][] {
  const rows: number[][] = [];
  let used = Number.POSITIVE_INFINITY;
  if (!(isShown ?? series.length > 1)) return rows;
  series.forEach(({ name }, i) => {
    const needed = 44 + LETTER * name.length;
    if (used + needed > width - 60) {
      rows.push([]);
      used = 0;
    }
    rows.at(-1)!.push(i);
    used += needed;
  });
  return rows;
}

function legend(chart: Chart): string[] {
  const top = chart.heading === undefined ? 14 : 60;
  return legendRows(chart).flatMap((row, r) => {
    let left = 60;
    return row.map((i) => {
      const one = chart.series[i]!;
      const sample = `<g transform="translate(${place(left)} ${top + LEGEND_ROW * r - 4})">${sampleLine(one, i)}</g>`;
      const name = text(left + 30, top + LEGEND_ROW * r, one.name, 'class="name"');
      left += 44 + LETTER * one.name.length;
      return sample + name;
    });
  });
}

/** How a series looks, 24 pixels wide around height 0: for legends outside of a picture, too. */
export function sampleLine(one: Series, i = 0): string {
  const look = lookOf(one, i);
  if (one.as === "bars") return `<rect ${look.fill} x="8" y="-5" width="10" height="10"/>`;
  const line =
    one.as === "points"
      ? ""
      : polyline(
          [
            [0, 0],
            [24, 0],
          ],
          look,
          one.color === "faint",
        );
  return line + (one.color === "faint" ? "" : mark([12, 0], look));
}
