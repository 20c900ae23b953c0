/** The charts of the report, drawn by Vega on the server: pictures that need no script and no network. */
import { parse, View } from "vega";
import { compile, type TopLevelSpec } from "vega-lite";
import { CYCLE, type Descent } from "./counterexample";
import type { OptimizerName } from "./optimizers";
import type { Resumed } from "./resume";
import type { Speed } from "./speed";
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
/** Any picture of Vega-Lite: what is said here is compiled, and so checked, when it is drawn. */
type Picture = Readonly<Record<string, unknown>>;

async function draw(values: readonly Row[], picture: Picture): Promise<string> {
  const { spec } = compile({
    width: 560,
    height: 300,
    data: { values: [...values] },
    ...picture,
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
      header: { labelColor: INK, labelFontSize: 13, labelFontWeight: "bold", title: null, labelAnchor: "start" },
      legend: {
        orient: "top",
        title: null,
        labelColor: INK,
        labelFontSize: 13,
        symbolStrokeWidth: 3,
        symbolType: "stroke",
      },
    },
  } as unknown as TopLevelSpec);
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
    scale: scaleOf(optimizers, COLORS),
  }) as const;

/** Optimizers are told apart without colour too. */
const DASHES: Record<OptimizerName, number[]> = { NAdam: [1, 0], Adam: [8, 4], AMSGrad: [2, 3], AdamW: [10, 3, 2, 3] };
const SHAPES: Record<OptimizerName, string> = {
  NAdam: "circle",
  Adam: "square",
  AMSGrad: "triangle-up",
  AdamW: "diamond",
};
const scaleOf = <T>(optimizers: readonly OptimizerName[], looks: Readonly<Record<OptimizerName, T>>) => ({
  domain: [...optimizers],
  range: optimizers.map((name) => looks[name]),
});

/** Training loss over steps: a panel for each run, with the others in grey behind it, so that none hides another. */
export function lossChart(results: readonly TrainingResult[]): Promise<string> {
  const optimizers = results.map(({ optimizer }) => optimizer);
  const curves = results.map(({ optimizer, losses }) => ({
    optimizer,
    points: thin(
      smooth(losses).map((loss, i) => ({ step: i + 1, loss })),
      200,
    ),
  }));
  const values = optimizers.flatMap((panel) =>
    curves.flatMap(({ optimizer, points }) => points.map((point) => ({ panel, optimizer, ...point }))),
  );
  const own = "datum.panel === datum.optimizer";
  const line = { type: "line", interpolate: "monotone" };
  const encoding = {
    x: {
      field: "step",
      type: "quantitative",
      title: "step",
      scale: { nice: false },
      axis: { tickCount: 4, grid: false },
    },
    y: { field: "loss", type: "quantitative", title: "cross-entropy", scale: { type: "log", nice: false } },
  };
  return draw(values, {
    facet: { field: "panel", type: "nominal", sort: optimizers },
    columns: 2,
    spec: {
      width: 250,
      height: 150,
      layer: [
        {
          transform: [{ filter: `!(${own})` }],
          mark: { ...line, strokeWidth: 1, color: "#b6c2d1" },
          encoding: { ...encoding, detail: { field: "optimizer" } },
        },
        {
          transform: [{ filter: own }],
          mark: { ...line, strokeWidth: 2 },
          encoding: { ...encoding, color: { ...colorBy(optimizers), legend: null } },
        },
      ],
    },
  });
}

/** Test accuracy after each epoch: marks side by side. */
export function accuracyChart(results: readonly TrainingResult[]): Promise<string> {
  const optimizers = results.map(({ optimizer }) => optimizer);
  const values = results.flatMap(({ optimizer, accuracies }) =>
    accuracies.map((accuracy, i) => ({ optimizer, epoch: i + 1, accuracy })),
  );
  return draw(values, {
    mark: { type: "point", size: 110, filled: true, opacity: 1 },
    encoding: {
      x: { field: "epoch", type: "ordinal", title: "epoch", axis: { labelAngle: 0 } },
      xOffset: { field: "optimizer", type: "nominal", sort: optimizers },
      y: {
        field: "accuracy",
        type: "quantitative",
        title: "test accuracy",
        scale: { zero: false },
        axis: { format: ".1%" },
      },
      color: colorBy(optimizers),
      shape: { field: "optimizer", type: "nominal", scale: scaleOf(optimizers, SHAPES) },
    },
  });
}

/** Milliseconds of a step, each beside what moving its bytes takes. */
export function speedChart(speeds: readonly Speed[], device: string): Promise<string> {
  const ours = `one step on ${device}`;
  const values = speeds.flatMap(({ optimizer, ours: milliseconds, limit }) => [
    { optimizer, what: ours, milliseconds },
    ...(limit === undefined ? [] : [{ optimizer, what: "memory limit", milliseconds: limit }]),
  ]);
  const y = { field: "optimizer", type: "nominal", title: null, sort: null };
  const yOffset = { field: "what", type: "nominal", sort: [ours, "memory limit"] };
  const x = { field: "milliseconds", type: "quantitative", title: "milliseconds a step", axis: { tickCount: 6 } };
  return draw(values, {
    height: 200,
    layer: [
      {
        mark: { type: "bar", cornerRadiusEnd: 2 },
        encoding: {
          x,
          y,
          yOffset,
          color: {
            field: "what",
            type: "nominal",
            scale: { domain: [ours, "memory limit"], range: ["#0d9488", "#b6c2d1"] },
            legend: { symbolType: "square" },
          },
        },
      },
      {
        mark: { type: "text", align: "left", dx: 5, fontSize: 12, color: INK },
        encoding: { x, y, yOffset, text: { field: "milliseconds", type: "quantitative", format: ".2f" } },
      },
    ],
  });
}

/** Losses before and after the checkpoint: the resumed run's marks lie on the line of the one that never stopped. */
export function resumeChart({ before, uninterrupted, resumed }: Resumed): Promise<string> {
  const whole = [...before, ...uninterrupted].map((loss, i) => ({ run: "never stopped", step: i + 1, loss }));
  const second = resumed.map((loss, i) => ({ run: "resumed", step: before.length + i + 1, loss }));
  const encoding = {
    x: { field: "step", type: "quantitative", title: "step", axis: { grid: false } },
    y: { field: "loss", type: "quantitative", title: "cross-entropy" },
    color: {
      field: "run",
      type: "nominal",
      scale: { domain: ["never stopped", "resumed"], range: ["#94a3b8", "#0d9488"] },
    },
  };
  return draw([...whole, ...second], {
    layer: [
      { mark: { type: "line", strokeWidth: 2 }, transform: [{ filter: "datum.run === 'never stopped'" }], encoding },
      { mark: { type: "point", filled: true, size: 40 }, transform: [{ filter: "datum.run === 'resumed'" }], encoding },
      {
        mark: { type: "rule", strokeDash: [4, 4], color: INK },
        encoding: { x: { datum: before.length + 0.5 } },
      },
    ],
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
      strokeDash: { field: "optimizer", type: "nominal", scale: scaleOf(descents.map(name), DASHES) },
      x: { field: "t", type: "quantitative", title: "t", axis: { tickCount: 5 } },
      y: { field: "value", type: "quantitative", title, scale: { type: column === "regret" ? "log" : "linear" } },
      color: colorBy(descents.map(name)),
    },
  });
}
