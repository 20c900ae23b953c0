/** Runs histories one after the other; the first that breaks a promise is told whole, and its seed makes it again. */
import { type History, runHistory } from "./history";

export async function runSeeds(first: number, count: number): Promise<void> {
  for (let seed = first; seed < first + count; seed++) {
    const history = await runHistory(seed);
    if (history.violation !== undefined) throw new Error(told(history));
  }
}

export function told({ seed, violation, log }: History): string {
  return `${log.join("\n")}\n\nseed ${seed}: ${violation}\nRun it again: OPT_SEED=${seed} OPT_SEEDS=1 npm run soak -- simulator`;
}
