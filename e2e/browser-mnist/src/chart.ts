/** Curves of several runs over steps, as SVG in the size that the page gives it. */
import { colourOf, dashOf, describeRun, markOf, type Run } from "./run";

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { left: 46, right: 30, top: 10, bottom: 30 };
const MOST_POINTS = 300;
const MARKS_PER_CURVE = 5;

interface Point {
  readonly step: number;
  readonly value: number;
}

export interface ChartOptions {
  readonly points: (run: Run) => readonly Point[];
  /** From a value to what is linear on the axis. */
  readonly scale: (value: number) => number;
  readonly ticks: readonly number[];
  readonly format: (value: number) => string;
  /** The range that is always shown. */
  readonly least: number;
  readonly most: number;
}

function element(name: string, attributes: Readonly<Record<string, string | number>>, text = ""): SVGElement {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.textContent = text;
  return made;
}

export function drawChart(target: SVGSVGElement, runs: readonly Run[], options: ChartOptions): void {
  const { width, height } = target.getBoundingClientRect();
  if (width === 0) return;
  const curves = runs.map((run) => ({ run, points: thinned(options.points(run)) }));
  const all = curves.flatMap(({ points }) => points);
  const lastStep = Math.max(100, ...all.map(({ step }) => step));
  const low = options.scale(Math.min(options.least, ...all.map(({ value }) => value)));
  const high = options.scale(Math.max(options.most, ...all.map(({ value }) => value)));
  const xOf = (step: number) => MARGIN.left + (step / lastStep) * (width - MARGIN.left - MARGIN.right);
  const yOf = (value: number) =>
    MARGIN.top + ((high - options.scale(value)) / (high - low)) * (height - MARGIN.top - MARGIN.bottom);

  const parts: SVGElement[] = [];
  for (const tick of options.ticks.filter((value) => options.scale(value) >= low && options.scale(value) <= high)) {
    const y = yOf(tick);
    parts.push(element("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y, y2: y }));
    parts.push(element("text", { x: MARGIN.left - 8, y: y + 4, "text-anchor": "end" }, options.format(tick)));
  }
  for (const tick of stepTicks(lastStep, width < 420 ? 3 : 5))
    parts.push(element("text", { x: xOf(tick), y: height - 8, "text-anchor": "middle" }, tick.toLocaleString("en")));
  for (const { run, points } of curves) if (points.length > 0) parts.push(...curve(run, points, xOf, yOf));
  target.setAttribute("viewBox", `0 0 ${width} ${height}`);
  target.setAttribute("aria-label", runs.length === 0 ? "no run yet" : runs.map(describeRun).join("; "));
  target.replaceChildren(...parts);
}

/** A line, a few marks that lie elsewhere on each run, and the run's number at its end. */
function curve(
  run: Run,
  points: readonly Point[],
  xOf: (step: number) => number,
  yOf: (value: number) => number,
): SVGElement[] {
  const path = points.map(({ step, value }) => `${xOf(step).toFixed(1)},${yOf(value).toFixed(1)}`).join(" ");
  const line = element("polyline", { points: path, stroke: colourOf(run), "stroke-dasharray": dashOf(run) });
  const last = points.at(-1)!;
  const stride = points.length / MARKS_PER_CURVE;
  const first = stride * ((run.number % 3) / 3);
  const marked =
    points.length <= 2 * MARKS_PER_CURVE ? points : points.filter((_, i) => (i - first + stride) % stride < 1);
  const marks = marked.map(({ step, value }) => mark(run, xOf(step), yOf(value)));
  const place = { x: xOf(last.step) + 9, y: yOf(last.value) + 4, style: `fill: ${colourOf(run)}` };
  const label = element("text", { class: "label", ...place }, String(run.number + 1));
  return [line, ...marks, label];
}

function mark(run: Run, x: number, y: number): SVGElement {
  return element("path", { class: "mark", d: markOf(run), fill: colourOf(run), transform: `translate(${x} ${y})` });
}

/** The legend's sample of a run's line. */
export function sampleOf(run: Run): SVGElement {
  const sample = element("svg", {
    class: "sample",
    viewBox: "0 0 44 14",
    width: 44,
    height: 14,
    "aria-hidden": "true",
  });
  sample.append(
    element("line", { x1: 1, x2: 43, y1: 7, y2: 7, stroke: colourOf(run), "stroke-dasharray": dashOf(run) }),
    mark(run, 22, 7),
  );
  return sample;
}

function thinned(points: readonly Point[]): Point[] {
  const stride = Math.max(1, Math.ceil(points.length / MOST_POINTS));
  return points.filter((_, i) => (points.length - 1 - i) % stride === 0);
}

/** Round numbers from 0, about as many as asked for. */
function stepTicks(last: number, count: number): number[] {
  const rough = last / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const size = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough)!;
  return Array.from({ length: Math.floor(last / size) + 1 }, (_, i) => i * size);
}
