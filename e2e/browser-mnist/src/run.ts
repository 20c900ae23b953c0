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

/** Runs are told apart by dash and mark, and by colour too. */
const DASHES = ["", "8 4", "2 4", "12 4 2 4", "5 2", "16 6"];
const MARKS = [
  "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
  "M-4 -4H4V4H-4Z",
  "M0 -5L5 4H-5Z",
  "M0 -5.5L5.5 0L0 5.5L-5.5 0Z",
  "M-1.5 -5H1.5V-1.5H5V1.5H1.5V5H-1.5V1.5H-5V-1.5H-1.5Z",
  "M0 5L5 -4H-5Z",
];
/** As many as can be told apart. */
export const MOST_RUNS = DASHES.length;

export const dashOf = (run: Run): string => DASHES[run.number % MOST_RUNS]!;
export const markOf = (run: Run): string => MARKS[run.number % MOST_RUNS]!;
export const colourOf = (run: Run): string => `var(--run-${run.number % MOST_RUNS})`;

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
