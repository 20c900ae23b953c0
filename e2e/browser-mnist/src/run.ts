/** What is kept of a run when its weights are gone: the settings, the curves, and how both are drawn. */

/** Images of a step. */
export const BATCH = 128;

export interface Settings {
  readonly optimizer: string;
  readonly lr: number;
  readonly device: string;
}

const LABELS: Readonly<Record<string, string>> = { webgpu: "WebGPU", wasm: "WebAssembly", js: "JavaScript" };

export const labelOf = (device: string): string => LABELS[device] ?? device;

export interface Measured {
  readonly step: number;
  /** Share of the test digits that were named rightly. */
  readonly accuracy: number;
}

export interface Run extends Settings {
  readonly number: number;
  readonly losses: number[];
  readonly measured: Measured[];
}

/** As many as charts can tell apart. */
export const MOST_RUNS = 6;

/** In words, for those who do not see the curves. */
export function describeRun(run: Run): string {
  const loss = run.losses.length > 0 ? `, loss ${smoothed(run.losses).at(-1)!.toFixed(3)}` : "";
  const accuracy = run.measured.length > 0 ? `, ${percent(run.measured.at(-1)!.accuracy)} of the test digits` : "";
  return `run ${run.number + 1}: ${run.optimizer}, rate ${run.lr}, ${labelOf(run.device)}, ${run.losses.length} steps${loss}${accuracy}`;
}

export const percent = (share: number): string => `${(100 * share).toFixed(2)}\u00a0%`;

/** Exponential moving average, without the pull towards the first value. */
export function smoothed(values: readonly number[], keep = 0.95): number[] {
  let average = 0;
  let weight = 0;
  return values.map((value) => {
    average = keep * average + (1 - keep) * value;
    weight = keep * weight + 1 - keep;
    return average / weight;
  });
}
