/** The steps of slots that are launched together: told to their states when one of those is asked for, so that a step does no work by slot. */
import type { Counters } from "./algorithm";
import type { Slot } from "./slot";

export class Counting {
  /** What the states do not tell yet: nobody has asked for, replaced or counted the state of one of the slots since `count`. */
  ahead: Counters | null = null;

  constructor(private readonly slots: readonly Slot[]) {}

  get now(): Counters {
    return this.ahead ?? this.slots[0]!.state!.counters;
  }

  count(counters: Counters): void {
    if (this.ahead === null) {
      for (const slot of this.slots) {
        slot.ahead?.settle();
        slot.ahead = this;
      }
    }
    this.ahead = counters;
  }

  settle(): void {
    const counters = this.ahead!;
    this.ahead = null;
    for (const slot of this.slots) {
      slot.ahead = null;
      slot.state!.counters = counters;
    }
  }
}
