/** The charts of the report, as SVG text that needs no script and no network. */
import { type Chart, draw, type Series } from "@opt/train/chart";
import { CYCLE, type Descent } from "./counterexample";
import { type OptimizerName, optimizerNames } from "./optimizers";
import type { Resumed } from "./resume";
import type { Speed } from "./speed";
import type { TrainingResult } from "./train";

/** An optimizer has one color, dash and mark in every chart. */
const colorOf = (optimizer: OptimizerName) => optimizerNames.indexOf(optimizer);
const MOST_POINTS = 400;

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
export function thin<T>(items: readonly T[], most = MOST_POINTS): T[] {
  const stride = Math.max(1, Math.ceil(items.length / most));
  return items.filter((_, i) => (items.length - 1 - i) % stride === 0);
}

/** Training loss over steps: a chart for each run, with the others in grey behind it, so that none hides another. */
export function lossCharts(results: readonly TrainingResult[]): string[] {
  const curves = results.map(({ optimizer, losses }): Series => {
    const points = thin(smooth(losses).map((loss, i) => [i + 1, loss] as const));
    return { name: optimizer, x: points.map(([step]) => step), y: points.map(([, loss]) => loss) };
  });
  return results.map(({ optimizer }) =>
    draw({
      ...{ title: `Training loss of ${optimizer}`, width: 400, height: 240, legend: false },
      ...{ x: { label: "step" }, y: { label: "cross-entropy", log: true } },
      series: [
        ...curves.filter(({ name }) => name !== optimizer).map((curve) => ({ ...curve, color: "faint" })),
        ...curves
          .filter(({ name }) => name === optimizer)
          .map((curve) => ({ ...curve, color: colorOf(optimizer), labels: [optimizer] })),
      ],
    }),
  );
}

/** Test accuracy after each epoch. */
export function accuracyChart(results: readonly TrainingResult[]): string {
  const epochs = Math.max(...results.map(({ accuracies }) => accuracies.length));
  return draw({
    title: "Test accuracy after each epoch",
    x: { label: "epoch", ticks: Array.from({ length: epochs }, (_, i) => i + 1), range: [0.5, epochs + 0.5] },
    y: { label: "test accuracy", percent: true },
    series: results.map(({ optimizer, accuracies }, i) => ({
      ...{ name: optimizer, as: "points", color: colorOf(optimizer), y: accuracies },
      x: accuracies.map((_, epoch) => epoch + 1 + (i - (results.length - 1) / 2) * 0.12), // beside each other
    })),
  });
}

/** Milliseconds of a step, each beside what moving its bytes takes. */
export function speedChart(speeds: readonly Speed[], device: string): string {
  const bars = (name: string, values: readonly (number | undefined)[], color: number | "faint"): Series => {
    const rows = values.flatMap((value, row) => (value === undefined ? [] : [{ value, row }]));
    return {
      ...{ name, as: "bars", color, x: rows.map(({ value }) => value), y: rows.map(({ row }) => row) },
      labels: rows.map(({ value }) => value.toFixed(2)),
    };
  };
  const limits = speeds.map(({ limit }) => limit);
  return draw({
    title: "Optimizer steps and the memory limit",
    height: 120 + 44 * speeds.length,
    x: { label: "milliseconds a step" },
    y: { label: "", rows: speeds.map(({ optimizer }) => optimizer) },
    series: [
      bars(
        `one step on ${device}`,
        speeds.map(({ ours }) => ours),
        0,
      ),
      ...(limits.some((limit) => limit !== undefined) ? [bars("memory limit", limits, "faint")] : []),
    ],
  });
}

/** Losses before and after the checkpoint: the resumed run's marks lie on the line of the one that never stopped. */
export function resumeChart({ before, uninterrupted, resumed }: Resumed): string {
  return draw({
    title: "Loss before and after the checkpoint",
    ...{ x: { label: "step" }, y: { label: "cross-entropy" }, rule: before.length + 0.5 },
    series: [
      { name: "never stopped", color: "faint", y: [...before, ...uninterrupted] },
      { name: "resumed", as: "points", color: 0, x: resumed.map((_, i) => before.length + i + 1), y: resumed },
    ],
  });
}

/** One column of the counterexample's traces, once a cycle. */
export function descentChart(descents: readonly Descent[], column: "x" | "regret", y: Chart["y"]): string {
  return draw({
    ...{ title: `${y.label} by step`, x: { label: "step t" }, y },
    series: descents.map(({ amsgrad, trace }) => {
      const rows = thin(trace.filter(({ t }) => t % CYCLE === 0));
      const name = amsgrad ? "AMSGrad" : "Adam";
      return { name, color: colorOf(name), x: rows.map(({ t }) => t), y: rows.map((row) => row[column]) };
    }),
  });
}
