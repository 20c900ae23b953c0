/** The loss that the home's network prints, as a chart beside its title. */
import type { Chart } from "@opt/train/chart";
import { shallowRef } from "vue";

export const spiralsCurve = shallowRef(curveOf(""));

export function showOutput(output: string): void {
  spiralsCurve.value = curveOf(output);
}

/** Reads lines such as "wasm: step 10, loss 0.6". */
function curveOf(output: string): Chart {
  const found = [...output.matchAll(/step (\d+), loss ([\d.]+)/g)];
  const [steps, losses] = [found.map(([, step]) => Number(step)), found.map(([, , loss]) => Number(loss))];
  return {
    title: "Loss by step of the network below",
    x: { label: "step", range: [0, Math.max(600, ...steps)] },
    y: { label: "loss", range: [0, Math.max(0.8, ...losses)] },
    series: [{ name: "loss", x: steps, y: losses }],
    height: 240,
  };
}
