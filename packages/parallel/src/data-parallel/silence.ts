/** While it is on, gradients stay on their rank: what `noSync` does. */
import { check, show } from "@opt/core";

export class Silence {
  #bodies = 0;

  get isOn(): boolean {
    return this.#bodies > 0;
  }

  /** @param ended is called where a body has ended */
  constructor(private readonly ended: () => void = () => {}) {}

  /** Runs `body`; silent until it has ended, or what it promises. @throws OptError BAD_ARGUMENT unless `body` is a function */
  during<Result>(body: () => Result): Result {
    check(typeof body === "function", "BAD_ARGUMENT", "noSync", () => `needs a function, got ${show(body)}.`);
    const end = () => {
      this.#bodies--;
      this.ended();
    };
    this.#bodies++;
    let result: Result;
    try {
      result = body();
    } catch (error) {
      end();
      throw error;
    }
    if (result instanceof Promise) return result.finally(end) as Result;
    end();
    return result;
  }
}
