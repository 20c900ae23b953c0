/** Curves as a picture: SVG text, or blocks for a terminal. */
import { check, checkOptions, show } from "@opt/core";
import type { History } from "../fit/events";

export interface PlotOptions {
  /** "svg": a picture for pages and files. "blocks": lines of text. Default "svg". */
  readonly as?: "svg" | "blocks";
  /** In a page: the SVG picture goes into it, in place of what it had. */
  readonly element?: { innerHTML: string };
  /** Where the values are; by default 1, 2, 3 ... */
  readonly x?: readonly number[];
  /** A logarithmic x axis. Default false. */
  readonly log?: boolean;
  /** Pixels, or characters. Default 640 by 320, or 60 by 10. */
  readonly width?: number;
  readonly height?: number;
}

const COLORS = ["#0d9488", "#d97706", "#4338ca", "#e11d48", "#64748b", "#15803d"];
const BLOCKS = " ▁▂▃▄▅▆▇█";

/**
 * Draws curves by name, or `loss` and `val_loss` of a history by epoch. Values that are no numbers leave gaps.
 *
 * @throws OptError BAD_ARGUMENT without a curve, and for options out of range
 * @example
 * const history = await fit(model, { data, loss: crossEntropy, optimizer, epochs: 5 });
 * console.log(plot(history, { as: "blocks" }));
 */
export function plot(curves: History | Readonly<Record<string, readonly number[]>>, options: PlotOptions = {}): string {
  const kinds = { as: "string", x: "array", log: "boolean", width: "number", height: "number" } as const;
  checkOptions("plot", options, { ...kinds, element: "object" });
  const { as = "svg", log = false, element } = options;
  check(
    as === "svg" || as === "blocks",
    "BAD_ARGUMENT",
    "plot",
    () => `as must be "svg" or "blocks", got ${show(as)}.`,
  );
  const named = Object.entries(isHistory(curves) ? lossesOf(curves) : curves).filter(([, values]) => values.length > 0);
  check(named.length > 0, "BAD_ARGUMENT", "plot", () => `needs curves, got ${show(curves)}.`, "{ loss: [3, 2, 1] }");
  const { width = as === "svg" ? 640 : 60, height = as === "svg" ? 320 : 10 } = options;
  if (as === "blocks") return named.map(([name, values]) => blocks(name, values, width, height)).join("\n\n");
  const along = (i: number) => options.x?.[i] ?? i + 1;
  const places = named.flatMap(([, values]) => values.map((_, i) => along(i)));
  const scale = (value: number) => (log ? Math.log(value) : value);
  const [left, right] = range(places.map(scale));
  const [low, high] = range(named.flatMap(([, values]) => values));
  const at = (value: number, i: number) => {
    const x = 48 + ((scale(along(i)) - left) / (right - left || 1)) * (width - 64);
    const y = 16 + (1 - (value - low) / (high - low || 1)) * (height - 48);
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  };
  const label = (x: number, y: number, text: string, more = "") =>
    `<text x="${x}" y="${y}" ${more}>${escaped(text)}</text>`;
  const lines = named.map(([name, values], c) => {
    const points = values.flatMap((value, i) => (Number.isFinite(value) ? [at(value, i)] : [])).join(" ");
    const color = COLORS[c % COLORS.length]!;
    const line = `<polyline fill="none" stroke="${color}" stroke-width="2" points="${points}"/>`;
    return line + label(56 + 110 * c, 12, name, `fill="${color}"`);
  });
  const axes = [
    label(44, 22, short(high), 'text-anchor="end"'),
    label(44, height - 32, short(low), 'text-anchor="end"'),
    label(48, height - 8, short(Math.min(...places))),
    label(width - 16, height - 8, short(Math.max(...places)), 'text-anchor="end"'),
    `<path d="M48 16V${height - 28}H${width - 12}" fill="none" stroke="#94a3b8"/>`,
  ];
  const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`;
  const picture = `${head}${axes.join("")}${lines.join("")}</svg>`;
  if (element) element.innerHTML = picture;
  return picture;
}

const isHistory = (curves: object): curves is History => "epochs" in curves && "losses" in curves;
const short = (value: number) => String(Number(value.toPrecision(3)));
const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

function lossesOf({ epochs }: History): Record<string, number[]> {
  const names = ["loss", "val_loss"].filter((name) => epochs.some((record) => record[name] !== undefined));
  return Object.fromEntries(names.map((name) => [name, epochs.map((record) => record[name] ?? Number.NaN)]));
}

function range(values: readonly number[]): [least: number, most: number] {
  const finite = values.filter(Number.isFinite);
  return finite.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [finite[0] ?? 0, finite[0] ?? 0]);
}

/** Columns of blocks; each column shows the mean of its values. */
function blocks(name: string, values: readonly number[], width: number, height: number): string {
  const columns = Math.min(width, values.length);
  const means = Array.from({ length: columns }, (_, c) => {
    const part = values.slice(
      Math.floor((c * values.length) / columns),
      Math.floor(((c + 1) * values.length) / columns),
    );
    return part.reduce((sum, value) => sum + value, 0) / part.length;
  });
  const [low, high] = range(means);
  const eighths = means.map((value) => 1 + Math.round(((value - low) / (high - low || 1)) * (8 * height - 1)));
  const rows = Array.from({ length: height }, (_, row) => {
    const floor = 8 * (height - 1 - row);
    return eighths.map((each) => (Number.isNaN(each) ? " " : BLOCKS[Math.min(8, Math.max(0, each - floor))])).join("");
  });
  return [`${name}: ${short(low)} to ${short(high)}`, ...rows.map((row) => row.trimEnd())].join("\n");
}
