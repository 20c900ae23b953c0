/** Curves of several runs over steps, in the size that the page gives them. */
import { type Chart, draw, sampleLine } from "@opt/train/chart";
import { describeRun, MOST_RUNS, type Run } from "./run";

export interface Points {
  readonly steps: readonly number[];
  readonly values: readonly number[];
}

/** Draws the runs as lines that differ in dash, mark and color, each with its number at its end. */
export function drawChart(
  target: HTMLElement,
  runs: readonly Run[],
  title: string,
  y: Chart["y"],
  pointsOf: (run: Run) => Points,
): void {
  const { width, height } = target.getBoundingClientRect();
  if (width === 0) return;
  const last = Math.max(100, ...runs.map(({ losses }) => losses.length));
  target.innerHTML = draw({
    ...{ title, width, height, legend: false, y },
    x: { label: "step", range: [0, last] },
    series: runs.map((run) => {
      const { steps, values } = pointsOf(run);
      const color = run.number % MOST_RUNS;
      return { name: describeRun(run), x: steps, y: values, color, labels: [String(run.number + 1)] };
    }),
  });
}

/** The legend's sample of a run's line. */
export function sampleOf({ number }: Run): Element {
  const sample = document.createElement("span");
  sample.className = "sample";
  const line = sampleLine({ name: "", y: [], color: number % MOST_RUNS });
  sample.innerHTML = `<svg class="opt-chart" viewBox="-6 -8 36 16" width="36" height="16" aria-hidden="true">${line}</svg>`;
  return sample;
}
