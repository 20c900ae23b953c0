/** What ranks tell each other where a step or an epoch ends: whether one of them stops, and what one of them threw. */
import { OptError } from "@opt/core";
import { WHERE } from "./options";
import type { FitCommunicator } from "./parts";

/** What a rank threw, while others wait for it. */
export interface Failure {
  readonly error: unknown;
}

/**
 * Every rank's value, on each of them.
 *
 * @throws what this rank threw; OptError IO where another one did
 */
export async function exchanged<Value>(
  where: string,
  ranks: FitCommunicator,
  value: Value,
  failure: Failure | undefined,
): Promise<Value[]> {
  const threw = failure && String((failure.error as Partial<Error> | undefined)?.message ?? failure.error);
  const all = await ranks.broadcast(await ranks.gather({ value, threw: threw ?? null }));
  if (failure) throw failure.error;
  const failed = all.findIndex((each) => each.threw !== null);
  if (failed < 0) return all.map((each) => each.value);
  const problem = `all ranks must go on, but rank ${failed} threw: ${all[failed]!.threw}`;
  throw new OptError("IO", where, problem, "See what it wrote.");
}

export class Agreement {
  /** The other ranks wait for this one in the step, so it goes on until all meet. */
  #failure: Failure | undefined;

  constructor(private readonly ranks: FitCommunicator) {}

  /** Keeps the first error until all ranks meet. */
  readonly hold = (error: unknown): void => {
    this.#failure ??= { error };
  };

  /** What this rank threw, in place of an error that followed from it. */
  cause(error: unknown): unknown {
    return this.#failure ? this.#failure.error : error;
  }

  /**
   * All ranks meet.
   *
   * @param isOver this rank ends by itself, or is interrupted
   * @param stop a callback has ended the run here
   * @returns the same of all ranks
   * @throws as `exchanged`
   */
  async meet(isOver: boolean, stop: boolean): Promise<{ isOver: boolean; stop: boolean }> {
    const failure = this.#failure;
    if (!(await this.ranks.any(isOver || failure !== undefined))) return { isOver: false, stop };
    const stops = await exchanged(WHERE, this.ranks, stop, failure);
    return { isOver: true, stop: stops.includes(true) };
  }
}
