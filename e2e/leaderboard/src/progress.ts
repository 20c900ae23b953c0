/** A line for each run, with the time left. */
import type { Row } from "./rows";

export class Progress {
  readonly #start = performance.now();
  #done = 0;

  /** @param left runs that are still to come */
  tell(
    row: Row,
    left: number,
    says = row.error ?? `loss ${Math.min(...row.losses)}${row.diverged ? ", diverged" : ""}`,
  ): void {
    this.#done++;
    const minutes = ((performance.now() - this.#start) / this.#done / 60_000) * left;
    const { task, optimizer, lr, seed } = row;
    console.error(
      `${task}, ${optimizer}, lr ${lr}, seed ${seed}: ${says}; ${left} runs left, ${minutes.toFixed(0)} min`,
    );
  }
}
