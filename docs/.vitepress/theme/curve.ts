/** The loss of a run as a chart, drawn again at most four times a second. */
import type { Chart } from "@opt/train/chart";
import { onUnmounted, shallowRef } from "vue";

const EVERY_MS = 250;

export function useCurve() {
  let [steps, losses]: [number[], number[]] = [[], []];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const chart = shallowRef(chartOf(steps, losses));

  function redraw() {
    timer = undefined;
    chart.value = chartOf([...steps], [...losses]);
  }
  /** Losses of the steps that follow, or that end at a step. */
  function add(more: readonly number[], last = (steps.at(-1) ?? 0) + more.length) {
    more.forEach((loss, i) => {
      steps.push(last - more.length + 1 + i);
      losses.push(loss);
    });
    timer ??= setTimeout(redraw, EVERY_MS);
  }
  function clear() {
    [steps, losses] = [[], []];
    redraw();
  }
  onUnmounted(() => clearTimeout(timer));
  return { chart, add, clear };
}

const chartOf = (x: readonly number[], y: readonly number[]): Chart => ({
  title: "Loss by step",
  x: { label: "step", ...(x.length < 2 && { range: [0, 100] }) },
  y: { label: "loss", ...(y.length === 0 && { range: [0, 3] }) },
  series: [{ name: "loss", x, y }],
  height: 220,
});
