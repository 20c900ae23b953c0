/** Shows how far a run is: in a terminal, in a log, in a page. */
import { checkOptions } from "@opt/core";
import type { Callback } from "../fit/events";
import { duration, numbers } from "./format";

/** What progress writes to: `process.stderr`, or an object of your own. */
export interface ProgressStream {
  /** A terminal has one line, which is drawn again. Others get a line for each epoch. */
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

/** An element of a page: programs without the DOM's types compile too. */
export interface PageElement {
  append(...nodes: unknown[]): void;
}

export interface ProgressOptions {
  /** Default: `process.stderr` in Node, the console in a worker. */
  readonly stream?: ProgressStream;
  /** In a page: where the bar and its text go. Default: the end of the body. */
  readonly element?: PageElement;
}

/** Milliseconds between two drawings, and between two lines of a long epoch. */
const DRAW_EVERY = 100;
const LINE_EVERY = 30_000;
const BAR = 24;

/** A place that shows a line. */
interface Display {
  readonly every: number;
  /** @param share of the epoch, if it is known */
  draw(text: string, share: number | undefined): void;
  /** Leaves a line for good. */
  line(text: string): void;
  end?(): void;
}

/**
 * One line in a terminal, drawn again: epoch, bar, means of loss and metrics, samples a second, time left of the epoch. Elsewhere one line
 * an epoch; in a page, a `<progress>` with its text. On several ranks the first one shows.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * await fit(model, { data, loss: crossEntropy, optimizer, epochs: 3, callbacks: [progress()] });
 */
export function progress(options: ProgressOptions = {}): Callback {
  checkOptions("progress", options, { stream: "object", element: "object" });
  let display: Display | undefined;
  let drawn = 0;
  let begun = 0;
  let before = 0; // samples that the epoch had when it was resumed
  return {
    firstRankOnly: true,
    onTrainBegin() {
      display = displayOf(options);
    },
    onEpochBegin({ samples }) {
      begun = performance.now();
      drawn = begun;
      before = samples;
    },
    onStepEnd(state) {
      const now = performance.now();
      if (display === undefined || now - drawn < display.every) return;
      drawn = now;
      const { epoch, epochs, epochStep, stepsPerEpoch, samples, logs } = state;
      const rate = (1000 * (samples - before)) / (now - begun);
      const share = stepsPerEpoch === undefined ? undefined : epochStep / stepsPerEpoch;
      const left = share ? `  ${duration((samples / share - samples) / rate)} left` : "";
      const steps = `${epochStep}${stepsPerEpoch === undefined ? "" : `/${stepsPerEpoch}`}`;
      const speed = rate >= 999.5 ? `${(rate / 1e3).toFixed(1)} k/s` : `${rate.toPrecision(3)} /s`;
      display.draw(`epoch ${epoch + 1}/${epochs}  ${steps}  ${numbers(logs)}  ${speed}${left}`, share);
    },
    onEpochEnd({ epoch, epochs, history }) {
      const { lr, seconds, ...logs } = history.epochs.at(-1)!;
      display?.line(`epoch ${epoch}/${epochs}  ${numbers(logs)}  ${duration(seconds)}`);
    },
    onTrainEnd: () => display?.end?.(),
  };
}

function displayOf({ stream, element }: ProgressOptions): Display {
  if (stream === undefined && typeof document === "object") return pageDisplay(element ?? document.body);
  const { stderr } = (globalThis as { process?: { stderr?: ProgressStream } }).process ?? {};
  const target = stream ?? stderr;
  return target?.isTTY ? terminalDisplay(target) : logDisplay(target);
}

function terminalDisplay(stream: ProgressStream): Display {
  const clear = "\r\u001b[K";
  return {
    every: DRAW_EVERY,
    draw(text, share) {
      const full = Math.round((share ?? 0) * BAR);
      const bar = share === undefined ? "" : `${"━".repeat(full)}${"─".repeat(BAR - full)} `;
      stream.write(clear + (bar + text).slice(0, (stream.columns ?? 120) - 1));
    },
    line: (text) => stream.write(`${clear}${text}\n`),
    end: () => stream.write(clear),
  };
}

function logDisplay(stream: ProgressStream | undefined): Display {
  const line = (text: string) => (stream ? stream.write(`${text}\n`) : console.log(text));
  return { every: LINE_EVERY, draw: line, line };
}

function pageDisplay(parent: PageElement): Display {
  const bar = document.createElement("progress");
  const label = document.createElement("output");
  const box = document.createElement("div");
  box.className = "opt-progress";
  box.append(bar, label);
  parent.append(box);
  return {
    every: DRAW_EVERY,
    draw(text, share) {
      if (share !== undefined) bar.value = share;
      label.textContent = text;
    },
    line(text) {
      bar.value = 1;
      label.textContent = text;
    },
  };
}
