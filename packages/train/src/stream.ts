/** Events on their way from a run to one reader. */
export class Stream<Event> {
  readonly #waiting: { readonly event: Event; readonly taken: () => void }[] = [];
  #isDone = false;
  #wake = () => {};

  /** Resolves when the reader comes back from this event, or leaves. */
  push(event: Event): Promise<void> {
    return new Promise((taken) => {
      this.#waiting.push({ event, taken });
      this.#wake();
    });
  }

  end(): void {
    this.#isDone = true;
    this.#wake();
  }

  async *read(): AsyncGenerator<Event, void, undefined> {
    try {
      while (true) {
        const [first] = this.#waiting;
        if (first !== undefined) {
          yield first.event;
          this.#waiting.shift();
          first.taken();
        } else if (this.#isDone) return;
        else
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
      }
    } finally {
      for (const { taken } of this.#waiting.splice(0)) taken();
    }
  }
}
