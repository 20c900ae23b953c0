/** Curves as a picture: SVG text, or blocks for a terminal. */
import { check, checkOptions, show } from "@opt/core";
import { chartsOf, isShare, stacked } from "../chart/curves";
import { format } from "../chart/scale";
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
  /** A logarithmic y axis. Default false. */
  readonly logY?: boolean;
  /** What screen readers call the picture. By default the names of the curves. */
  readonly title?: string;
  /** What x counts. Default "epoch" for a history, else "step". */
  readonly xLabel?: string;
  /** What y measures. By default read from the curves' names. */
  readonly yLabel?: string;
  /** Pixels, or characters. Default 640 by 320 (480 with accuracies), or 60 by 10. */
  readonly width?: number;
  readonly height?: number;
}

const BLOCKS = " ▁▂▃▄▅▆▇█";

/**
 * Draws curves by name, or the losses and accuracies of a history by epoch. Accuracies have a scale of their own.
 * Values that are no numbers leave gaps.
 *
 * @throws OptError BAD_ARGUMENT without a curve, and for options out of range
 * @example
 * const history = await fit(model, { data, loss: crossEntropy, optimizer, epochs: 5 });
 * console.log(plot(history, { as: "blocks" }));
 */
export function plot(curves: History | Readonly<Record<string, readonly number[]>>, options: PlotOptions = {}): string {
  const texts = { as: "string", title: "string", xLabel: "string", yLabel: "string" } as const;
  const kinds = { x: "array", log: "boolean", logY: "boolean", width: "number", height: "number" } as const;
  checkOptions("plot", options, { ...texts, ...kinds, element: "object" });
  const { as = "svg", log = false, logY = false, yLabel, element } = options;
  check(
    as === "svg" || as === "blocks",
    "BAD_ARGUMENT",
    "plot",
    () => `as must be "svg" or "blocks", got ${show(as)}.`,
  );
  const named = Object.entries(isHistory(curves) ? curvesOf(curves) : curves).filter(([, values]) => values.length > 0);
  check(named.length > 0, "BAD_ARGUMENT", "plot", () => `needs curves, got ${show(curves)}.`, "{ loss: [3, 2, 1] }");
  const { width, height } = options;
  if (as === "blocks") return named.map(([name, values]) => blocks(name, values, width, height)).join("\n\n");
  const { title = named.map(([name]) => name).join(", "), xLabel = isHistory(curves) ? "epoch" : "step" } = options;
  const y = { log: logY, ...(yLabel !== undefined && { label: yLabel }) };
  const axes = { x: { label: xLabel, log }, y, at: options.x };
  const picture = stacked(chartsOf(Object.fromEntries(named), title, axes, { width, height }));
  if (element) element.innerHTML = picture;
  return picture;
}

const isHistory = (curves: object): curves is History => "epochs" in curves && "losses" in curves;

function curvesOf({ epochs }: History): Record<string, number[]> {
  const recorded = new Set(epochs.flatMap((record) => Object.keys(record)));
  const names = [...recorded].filter((name) => /^(val_)?loss$/.test(name) || isShare(name));
  return Object.fromEntries(names.map((name) => [name, epochs.map((record) => record[name] ?? Number.NaN)]));
}

function range(values: readonly number[]): [least: number, most: number] {
  const finite = values.filter(Number.isFinite);
  return finite.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [finite[0] ?? 0, finite[0] ?? 0]);
}

/** Columns of blocks; each column shows the mean of its values. */
function blocks(name: string, values: readonly number[], width = 60, height = 10): string {
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
  return [`${name}: ${format(low)} to ${format(high)}`, ...rows.map((row) => row.trimEnd())].join("\n");
}
