/** Decides by one seed in which order the calls of simulated processes take effect. */
import { random } from "../random";

/** A process. Once it is dead, its calls have no effect and no answer. */
export class Actor {
  readonly name: string;
  isAlive = true;
  /** How often its calls are chosen before those of others. */
  weight = 1;
  /** Names of saves that it began, for `endAttempt`. */
  readonly attempts = new Set<string>();
  /** How many calls that begin with `failing` succeed before one fails, and how. */
  succeed = Infinity;
  failing = "";
  code = "EIO";

  constructor(name: string) {
    this.name = name;
  }
}

interface PendingAction {
  readonly actor: Actor;
  readonly name: string;
  readonly run: () => void;
  /** Who has more goes first, in histories of that kind. */
  readonly rank: number;
  /** What may still happen of it if the process dies now. */
  readonly partly: (() => void) | undefined;
}

export class Scheduler {
  readonly log: string[] = [];
  readonly #next: () => number;
  #pending: PendingAction[] = [];
  /** Some calls wait until nothing else is left; otherwise each is as likely as the next. */
  isUnfair = false;
  /** What processes do again and again while they live: the seed says when. */
  readonly timers = new Set<() => void>();
  /** Calls that have taken effect. */
  events = 0;
  /** How many of them gave something its name: what goes wrong there does most harm. */
  renames = 0;

  constructor(seed: number) {
    this.#next = random(seed);
  }

  /** A whole number from 0 to below `count`. */
  below(count: number): number {
    return this.#next() % count;
  }

  chance(probability: number): boolean {
    return this.#next() < probability * 2 ** 32;
  }

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)]!;
  }

  shuffle<T>(values: T[]): T[] {
    for (let i = values.length - 1; i > 0; i--) {
      const j = this.below(i + 1);
      [values[i], values[j]] = [values[j]!, values[i]!];
    }
    return values;
  }

  say(line: string): void {
    this.log.push(line);
  }

  /** The promise resolves when the seed has chosen this call; `body` takes effect at once. */
  call<T>(actor: Actor, name: string, body: () => T | Promise<T>, partly?: () => void): Promise<T> {
    return new Promise((resolve, reject) => {
      if (!actor.isAlive) return;
      const run = () => {
        try {
          resolve(body());
        } catch (error) {
          this.say(`    fails: ${(error as Error).message}`);
          reject(error);
        }
      };
      this.#pending.push({ actor, name, run, partly, rank: this.#next() });
    });
  }

  kill(actor: Actor): void {
    if (!actor.isAlive) return;
    this.say(`${actor.name} dies`);
    actor.isAlive = false;
    const own = this.#pending.filter((one) => one.actor === actor);
    this.#pending = this.#pending.filter((one) => one.actor !== actor);
    for (const { name, partly } of own) {
      if (!partly || !this.chance(0.5)) continue;
      this.say(`  partly: ${actor.name} ${name}`);
      partly();
    }
  }

  /** Lets calls take effect until none is pending. Between any two, `before` may do something, and tells whether it has. */
  async drain(before: () => boolean): Promise<void> {
    for (;;) {
      // All that follows from the last answer happens before the next.
      await new Promise((resolve) => setImmediate(resolve));
      if (before()) continue;
      if (this.#pending.length === 0) return;
      if (this.timers.size > 0 && this.chance(0.02)) this.pick([...this.timers])();
      const [one] = this.#pending.splice(this.#choose(), 1);
      this.events++;
      if (/^(rename|putOnce|complete) /.test(one!.name)) this.renames++;
      this.say(`${one!.actor.name} ${one!.name}`);
      one!.run();
    }
  }

  #choose(): number {
    if (this.isUnfair) {
      const first = this.#pending.reduce((most, one) => (one.rank > most.rank ? one : most));
      return this.#pending.indexOf(first);
    }
    let left = this.below(this.#pending.reduce((sum, { actor }) => sum + actor.weight, 0));
    return this.#pending.findIndex(({ actor }) => {
      left -= actor.weight;
      return left < 0;
    });
  }
}
