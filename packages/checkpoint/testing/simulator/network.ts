/** Communicators whose messages come late; once a rank has died, the others' calls reject, sooner or later. */
import type { Communicator } from "../../src/save/ranks/communicator";
import type { Actor, Scheduler } from "./scheduler";

interface PendingReceive {
  readonly to: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

export class Network {
  readonly #scheduler: Scheduler;
  readonly #ranks: readonly Actor[];
  /** By channel, sender, receiver and number. */
  readonly #delivered = new Map<string, unknown>();
  readonly #waiting = new Map<string, PendingReceive>();
  isBroken = false;

  constructor(scheduler: Scheduler, ranks: readonly Actor[]) {
    this.#scheduler = scheduler;
    this.#ranks = ranks;
  }

  /** A rank has died. */
  break(): void {
    this.isBroken = true;
    for (const key of this.#waiting.keys()) this.#notice(key);
  }

  #notice(key: string): void {
    const waiting = this.#waiting.get(key)!;
    void this.#scheduler.call(this.#ranks[waiting.to]!, `hears that a rank is dead (${key})`, () => {
      if (!this.#waiting.delete(key)) return;
      waiting.reject(new Error("a rank is dead"));
    });
  }

  #send(key: string, from: number, value: unknown): Promise<void> {
    const copy = value === undefined ? undefined : JSON.parse(JSON.stringify(value));
    const deliver = () => {
      const waiting = this.#waiting.get(key);
      this.#waiting.delete(key);
      if (waiting && !this.#ranks[waiting.to]!.isAlive) return;
      if (waiting) waiting.resolve(copy);
      else this.#delivered.set(key, copy);
    };
    return this.#scheduler.call(this.#ranks[from]!, `message ${key}`, deliver, deliver);
  }

  #receive(key: string, to: number): Promise<unknown> {
    if (this.#delivered.has(key)) {
      const value = this.#delivered.get(key);
      this.#delivered.delete(key);
      return this.#scheduler.call(this.#ranks[to]!, `takes ${key}`, () => value);
    }
    return new Promise((resolve, reject) => {
      this.#waiting.set(key, { to, resolve, reject });
      if (this.isBroken) this.#notice(key);
    });
  }

  communicator(rank: number, channel = "main"): Communicator {
    const size = this.#ranks.length;
    let number = 0;
    const others = Array.from({ length: size }, (_, other) => other).slice(1);
    const keyOf = (call: number, from: number, to: number) => `${channel} ${call} ${from}>${to}`;
    const gather = async <T>(value: T): Promise<T[] | undefined> => {
      const call = number++;
      if (rank > 0) return void (await this.#send(keyOf(call, rank, 0), rank, value));
      return [value, ...(await Promise.all(others.map((from) => this.#receive(keyOf(call, from, 0), 0))))] as T[];
    };
    const broadcast = async <T>(value: T | undefined): Promise<T> => {
      const call = number++;
      if (rank > 0) return (await this.#receive(keyOf(call, 0, rank), rank)) as T;
      const sent = others.map((to) => this.#send(keyOf(call, 0, to), 0, value));
      // Some return when the message is on its way, some when it has come.
      if (this.#scheduler.chance(0.5)) await Promise.all(sent);
      return value as T;
    };
    let aside: Communicator | undefined;
    return {
      rank,
      size,
      gather,
      broadcast,
      async barrier() {
        await gather(0);
        await broadcast(0);
      },
      aside: () => (aside ??= this.communicator(rank, "aside")),
    };
  }
}
