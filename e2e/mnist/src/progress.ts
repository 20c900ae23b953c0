import { SingleBar } from "cli-progress";

export interface Progress {
  update(step: number, loss: number): void;
  stop(): void;
}

/** A bar on stderr; nothing when that is no terminal. */
export function startProgress(label: string, steps: number): Progress {
  if (!process.stderr.isTTY) return { update() {}, stop() {} };
  const bar = new SingleBar({
    format: `${label} {bar} {percentage} % | loss {loss} | {eta_formatted} left`,
    barCompleteChar: "█",
    barIncompleteChar: "░",
    barsize: 32,
    hideCursor: true,
    clearOnComplete: true,
    stream: process.stderr,
  });
  bar.start(steps, 0, { loss: "-" });
  return {
    update(step, loss) {
      bar.update(step, { loss: loss.toFixed(4) });
    },
    stop() {
      bar.stop();
    },
  };
}
