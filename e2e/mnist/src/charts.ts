/** The charts of the report, drawn by Vega on the server: pictures that need no script and no network. */
import { parse, View } from "vega";
import { compile, type TopLevelSpec } from "vega-lite";
import { CYCLE, type Descent } from "./counterexample";
import type { OptimizerName } from "./optimizers";
import type { TrainingResult } from "./train";

const COLORS: Record<OptimizerName, string> = {
  NAdam: "#0d9488",
  Adam: "#d97706",
  AMSGrad: "#e11d48",
  AdamW: "#4338ca",
};
const INK = "#334155";
const FAINT = "#e2e8f0";

type Row = Readonly<Record<string, string | number>>;
type Unit = Pick<Extract<TopLevelSpec, { mark: unknown }>, "mark" | "encoding">;

async function draw(values: readonly Row[], unit: Unit): Promise<string> {
  const { spec } = compile({
    width: 560,
    height: 300,
    data: { values: [...values] },
    ...unit,
    config: {
      font: "system-ui, sans-serif",
      background: "transparent",
      view: { stroke: null },
      axis: {
        labelColor: INK,
        titleColor: INK,
        gridColor: FAINT,
        domainColor: FAINT,
        tickColor: FAINT,
        labelFontSize: 12,
        titleFontSize: 12,
        titleFontWeight: "normal",
        titlePadding: 8,
      },
      legend: {
        orient: "top",
        title: null,
        labelColor: INK,
        labelFontSize: 13,
        symbolStrokeWidth: 3,
        symbolType: "stroke",
      },
    },
  } as TopLevelSpec);
  return new View(parse(spec), { renderer: "none" }).toSVG();
}

/** Exponential moving average, without the pull towards the first value. */
export function smooth(values: readonly number[], keep = 0.97): number[] {
  let average = 0;
  let weight = 0;
  return values.map((value) => {
    average = keep * average + (1 - keep) * value;
    weight = keep * weight + 1 - keep;
    return average / weight;
  });
}

/** At most `most` of the items, evenly spaced, with the last one. */
export function thin<T>(items: readonly T[], most = 400): T[] {
  const stride = Math.max(1, Math.ceil(items.length / most));
  return items.filter((_, i) => (items.length - 1 - i) % stride === 0);
}

/** An optimizer has one color in every chart. */
const colorBy = (optimizers: readonly OptimizerName[]) =>
  ({
    field: "optimizer",
    type: "nominal",
    scale: { domain: [...optimizers], range: optimizers.map((name) => COLORS[name]) },
  }) as const;

/** Training loss of every run over its steps. */
export function lossChart(results: readonly TrainingResult[]): Promise<string> {
  const values = results.flatMap(({ optimizer, losses }) =>
    thin(smooth(losses).map((loss, i) => ({ optimizer, step: i + 1, loss }))),
  );
  return draw(values, {
    mark: { type: "line", strokeWidth: 1.5, opacity: 0.85, interpolate: "monotone" },
    encoding: {
      x: {
        field: "step",
        type: "quantitative",
        title: "step",
        scale: { nice: false },
        axis: { tickCount: 8, grid: false },
      },
      y: { field: "loss", type: "quantitative", title: "cross-entropy, smoothed", scale: { type: "log", nice: false } },
      color: colorBy(results.map(({ optimizer }) => optimizer)),
    },
  });
}

/** Test accuracy after each epoch. */
export function accuracyChart(results: readonly TrainingResult[]): Promise<string> {
  const values = results.flatMap(({ optimizer, accuracies }) =>
    accuracies.map((accuracy, i) => ({ optimizer, epoch: i + 1, accuracy })),
  );
  return draw(values, {
    mark: { type: "line", strokeWidth: 2, point: { size: 60, filled: true } },
    encoding: {
      x: { field: "epoch", type: "ordinal", title: "epoch", axis: { labelAngle: 0 } },
      y: {
        field: "accuracy",
        type: "quantitative",
        title: "test accuracy",
        scale: { zero: false },
        axis: { format: ".1%" },
      },
      color: colorBy(results.map(({ optimizer }) => optimizer)),
    },
  });
}

/** One column of the counterexample's traces, once a cycle. */
export function descentChart(descents: readonly Descent[], column: "x" | "regret", title: string): Promise<string> {
  const name = ({ amsgrad }: Descent): OptimizerName => (amsgrad ? "AMSGrad" : "Adam");
  const values = descents.flatMap((descent) =>
    descent.trace
      .filter(({ t }) => t % CYCLE === 0)
      .map((row) => ({ optimizer: name(descent), t: row.t, value: row[column] })),
  );
  return draw(values, {
    mark: { type: "line", strokeWidth: 2 },
    encoding: {
      x: { field: "t", type: "quantitative", title: "t", axis: { tickCount: 5 } },
      y: { field: "value", type: "quantitative", title, scale: { type: column === "regret" ? "log" : "linear" } },
      color: colorBy(descents.map(name)),
    },
  });
}
