/** Reads small results of steps, in their order. Devices that answer later are not waited for: training runs ahead by some steps. */
import type { Tensor } from "@opt/core";
import { readThen } from "../metrics/read-then";

/** Results on their way at most. */
const AHEAD = 16;

export class Reads {
  readonly #waiting: Promise<void>[] = [];

  /** Hands the values to `take`, now or later, and frees the tensor. Resolves when the next step may begin. */
  push(tensor: Tensor, take: (values: ArrayLike<number>) => void): Promise<void> | undefined {
    const before = this.#waiting.at(-1);
    let values: ArrayLike<number> | undefined;
    const read = readThen(tensor, (given) => {
      if (before === undefined) take(given);
      else values = given;
    });
    if (read === undefined) return undefined;
    this.#waiting.push(Promise.all([read, before]).then(() => values && take(values)));
    return this.#waiting.length > AHEAD ? this.#waiting.shift() : undefined;
  }

  /** Waits for all. */
  async drain(): Promise<void> {
    await Promise.all(this.#waiting.splice(0));
  }
}
