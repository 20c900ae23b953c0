/** When a compiled step is compared with an eager one: what a callback changes between epochs must not go unseen. */

/** Steps between two checks at least: one costs as much as an eager step. */
const STEPS = 16;
/** Share of the run's time that checks may take. An eager step of a tiny model takes as long as a hundred compiled ones. */
const SHARE = 0.02;

export class Checks {
  /** The step of the last one. */
  #step = 0;
  #count = 0;
  #milliseconds = 0;
  readonly #begun = performance.now();

  /** Whether the first step of an epoch is to be checked: the first time, in the last epoch, and while there is time. */
  isDue(step: number, isLastEpoch: boolean): boolean {
    if (step - this.#step < STEPS) return false;
    const isInTime = this.#milliseconds <= SHARE * (performance.now() - this.#begun);
    if (this.#count > 0 && !isLastEpoch && !isInTime) return false;
    this.#step = step;
    this.#count++;
    return true;
  }

  /** One has taken so long. */
  took(milliseconds: number): void {
    this.#milliseconds += milliseconds;
  }
}
