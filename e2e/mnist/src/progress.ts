import { SingleBar } from "cli-progress";

export interface Progress {
  update(step: number, loss: number): void;
  stop(): void;
}

/** A bar on stderr; four lines where that is no terminal. */
export function startProgress(label: string, steps: number): Progress {
  if (!process.stderr.isTTY) return inLines(label, steps);
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

function inLines(label: string, steps: number): Progress {
  let quarters = 0;
  return {
    update(step, loss) {
      if (4 * step < steps * (quarters + 1)) return;
      quarters = Math.floor((4 * step) / steps);
      console.error(`${label} ${String(25 * quarters).padStart(3)} % | loss ${loss.toFixed(4)}`);
    },
    stop() {},
  };
}
