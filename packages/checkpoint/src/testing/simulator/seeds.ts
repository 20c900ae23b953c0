/** Runs histories one after the other; the first that breaks a promise is told whole, and its seed makes it again. */
import { type History, runHistory } from "./history";

export interface Ran {
  readonly histories: number;
  /** Calls and messages of all of them. */
  readonly events: number;
}

export async function runSeeds(first: number, count: number): Promise<Ran> {
  let events = 0;
  for (let seed = first; seed < first + count; seed++) {
    const history = await runHistory(seed);
    if (history.violation !== undefined) throw new Error(told(history));
    events += history.events;
  }
  return { histories: count, events };
}

function told({ seed, violation, log }: History): string {
  return `${log.join("\n")}\n\nseed ${seed}: ${violation}\nRun it again: runHistory(${seed}).`;
}
