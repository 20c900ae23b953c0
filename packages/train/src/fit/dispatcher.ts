/** Hands the events of a run to its callbacks, and to those who iterate over it. */
import { Stream } from "../stream";
import {
  type Callback,
  type EventHandler,
  type FitControl,
  type FitEvent,
  type FitEventType,
  type FitState,
  hookOf,
} from "./events";

const isPromise = (value: unknown) => typeof (value as PromiseLike<unknown> | undefined)?.then === "function";

export class Dispatcher {
  readonly #hooks = new Map<FitEventType, EventHandler[]>();
  readonly #streams = new Set<Stream<FitEvent>>();
  /** A reader has left early. */
  isLeft = false;

  constructor(
    private readonly callbacks: readonly Callback[],
    private readonly state: FitState,
    private readonly control: FitControl,
  ) {}

  /** Resolves when every callback is done, and every reader has come back for the next event. Undefined if nobody waits. */
  emit(type: FitEventType): Promise<void> | undefined {
    const hooks = this.#hooksOf(type);
    for (let i = 0; i < hooks.length; i++) {
      const later = hooks[i]!(this.state, this.control);
      if (isPromise(later)) return this.#finish(type, later, hooks.slice(i + 1));
    }
    return this.#streams.size === 0 ? undefined : this.#finish(type, undefined, []);
  }

  /** `trainEnd`: every callback has its end, also after one that throws. Returns what they threw. */
  async end(): Promise<unknown[]> {
    const errors: unknown[] = [];
    for (const hook of this.#hooksOf("trainEnd")) {
      try {
        await hook(this.state, this.control);
      } catch (error) {
        errors.push(error);
      }
    }
    for (const stream of this.#streams) {
      await stream.push({ type: "trainEnd", state: this.state });
      stream.end();
    }
    return errors;
  }

  #hooksOf(type: FitEventType): readonly EventHandler[] {
    let hooks = this.#hooks.get(type);
    if (hooks === undefined) {
      const name = hookOf(type);
      hooks = this.callbacks.flatMap((callback) => callback[name]?.bind(callback) ?? []);
      this.#hooks.set(type, hooks);
    }
    return hooks;
  }

  async #finish(type: FitEventType, first: unknown, hooks: readonly EventHandler[]): Promise<void> {
    await first;
    for (const hook of hooks) await hook(this.state, this.control);
    for (const stream of this.#streams) await stream.push({ type, state: this.state });
  }

  /** The events from now on. A reader that leaves early stops the run. */
  async *events(): AsyncGenerator<FitEvent, void, undefined> {
    const stream = new Stream<FitEvent>();
    this.#streams.add(stream);
    let isWhole = false;
    try {
      yield* stream.read();
      isWhole = true;
    } finally {
      this.#streams.delete(stream);
      if (!isWhole) this.isLeft = true;
    }
  }
}
