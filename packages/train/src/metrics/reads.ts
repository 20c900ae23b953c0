/** Reads small results: at once, or later where their device takes its time. */
import type { Tensor } from "@opt/core";

/** Whether tensors of this device can be read at once. */
export const answersAtOnce = ({ device }: Tensor): boolean => device.backend.readSync !== undefined;

/** Hands the values to `take`, and frees the tensor. */
export function readThen(tensor: Tensor, take: (values: ArrayLike<number>) => void): Promise<void> | undefined {
  if (!answersAtOnce(tensor))
    return tensor
      .data()
      .then(take)
      .finally(() => tensor.dispose());
  take(tensor.dataSync());
  tensor.dispose();
  return undefined;
}

/** Results on their way at most. */
const AHEAD = 16;

/** Reads the results of steps in their order. Training runs ahead of a slow device by some steps. */
export class Reads {
  readonly #waiting: Promise<void>[] = [];

  /** Resolves when the next step may begin. */
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
