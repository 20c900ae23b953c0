/** Calls the hooks of callbacks, and hands events to those who iterate over a run. */
import { Stream } from "../stream";
import {
  type Callback,
  type FitControl,
  type FitEvent,
  type FitState,
  fitEvents,
  type HookName,
  hookOf,
} from "./events";

export class Hooks {
  /** A reader has left early. */
  isLeft = false;

  constructor(
    private readonly callbacks: Callback[],
    private readonly state: FitState & { freeCopies(): void },
    private readonly control: FitControl,
  ) {}

  /** One after the other. A promise where one of them takes time. */
  call(hook: HookName, from = 0): Promise<void> | undefined {
    for (let i = from; i < this.callbacks.length; i++) {
      const later = this.callbacks[i]![hook]?.(this.state, this.control) as PromiseLike<unknown> | undefined;
      if (typeof later?.then !== "function") continue;
      return Promise.resolve(later).then(() => {
        this.state.freeCopies();
        return this.call(hook, i + 1);
      });
    }
    return undefined;
  }

  /** `onTrainEnd`, also after one that throws. Returns what they threw. */
  async end(): Promise<unknown[]> {
    const errors: unknown[] = [];
    for (const callback of [...this.callbacks])
      try {
        await callback.onTrainEnd?.(this.state, this.control);
      } catch (error) {
        errors.push(error);
      }
    this.state.freeCopies();
    return errors;
  }

  /** The events from now on. The run waits until each is taken. */
  async *events(): AsyncGenerator<FitEvent, void, undefined> {
    const stream = new Stream<FitEvent>();
    const hooks = fitEvents.map((type) => [hookOf(type), (state: FitState) => stream.push({ type, state })]);
    const reader: Callback = Object.fromEntries(hooks);
    this.callbacks.push(reader);
    try {
      for await (const event of stream.read()) {
        yield event;
        if (event.type === "trainEnd") return;
      }
    } finally {
      this.callbacks.splice(this.callbacks.indexOf(reader), 1);
      this.isLeft = true;
    }
  }
}
