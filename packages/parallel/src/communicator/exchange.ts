/** Moves of one collective, of which some begin when others have ended: by calls and not by promises, so that they go on within a backward. */
import type { Operation } from "./operation";

export class Exchange {
  /** Resolves when all moves have ended: none goes on alone. Rejects with the first error. */
  readonly done: Promise<void>;
  #resolve!: () => void;
  #reject!: (error: Error) => void;
  /** Moves, readings, headings, and whoever begins them. */
  #open = 2;
  #failure: Error | undefined;
  /** What has ended and was not answered yet: one after the other, however deep the engine stands. */
  readonly #ended: (() => void)[] = [];
  #isAnswering = false;

  constructor(private readonly operation: Operation) {
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.done.catch(() => {}); // whoever began it awaits it later
    operation.whenAgreed((error) => this.#answer(error, () => {}));
  }

  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  /** @param then may begin others */
  move(kind: "send" | "receive", rank: number, phase: number, bytes: Uint8Array, then: () => void = () => {}): void {
    this.#open++;
    this.operation.begin(kind, rank, phase, bytes, (error) => this.#answer(error, then));
  }

  /** What a device is asked: at once where it answers at once. */
  read(bytes: Uint8Array | Promise<Uint8Array>, then: (bytes: Uint8Array) => void): void {
    this.#open++;
    if (bytes instanceof Uint8Array) this.#answer(undefined, () => then(bytes));
    else
      bytes.then(
        (read) => this.#answer(undefined, () => then(read)),
        (error: Error) => this.#answer(error, () => {}),
      );
  }

  /** All that begins by itself has begun. */
  begun(): Promise<void> {
    this.#answer(undefined, () => {});
    return this.done;
  }

  #answer(error: Error | undefined, then: () => void): void {
    this.#failure ??= error;
    this.#ended.push(then);
    if (this.#isAnswering) return;
    this.#isAnswering = true;
    for (let next = this.#ended.shift(); next !== undefined; next = this.#ended.shift()) {
      try {
        if (!this.hasFailed) next();
      } catch (thrown) {
        this.#failure ??= thrown as Error;
      }
      this.#open--;
    }
    this.#isAnswering = false;
    if (this.#open > 0) return;
    if (this.#failure) this.#reject(this.#failure);
    else this.#resolve();
  }
}

/** Does things in the order of their numbers, each as soon as those before it were possible: messages of one tag come in one order. */
export class Turns {
  readonly #possible = new Map<number, () => void>();
  #next = 0;

  possible(number: number, action: () => void): void {
    this.#possible.set(number, action);
    for (let next = this.#possible.get(this.#next); next !== undefined; next = this.#possible.get(this.#next)) {
      this.#possible.delete(this.#next++);
      next();
    }
  }
}
