/** The steps of a trace while passes change them, and which of them read and write a piece of memory. */
import { readsOf, writesOf } from "../../backend/launches";
import type { Memory } from "../../backend/memory";
import type { Launch } from "../../backend/spec";
import type { Step } from "../steps";

type Index = Map<Memory, Set<number>>;

export class Uses {
  readonly #steps: (Step | null)[];
  readonly #readers: Index = new Map();
  readonly #writers: Index = new Map();
  /** Host code may do anything to memory that is not a temporary. */
  readonly #hosts: readonly number[];

  /** @param temporaries memory that nobody sees before or after */
  constructor(
    steps: readonly Step[],
    readonly temporaries: ReadonlySet<Memory>,
  ) {
    this.#steps = [...steps];
    this.#hosts = steps.flatMap(({ kind }, index) => (kind === "host" ? [index] : []));
    steps.forEach((step, index) => {
      this.#note(step, (uses) => uses.add(index));
    });
  }

  get length(): number {
    return this.#steps.length;
  }

  /** What is left. */
  get steps(): Step[] {
    return this.#steps.filter((step) => step !== null);
  }

  /** The launch of a kind at a step; undefined if something else is there. */
  launch<K extends Launch["kind"]>(kind: K, index: number): Extract<Launch, { kind: K }> | undefined {
    const step = this.#steps[index];
    if (step?.kind !== "launch" || step.launch.kind !== kind) return undefined;
    return step.launch as Extract<Launch, { kind: K }>;
  }

  at(index: number): Step | null {
    return this.#steps[index]!;
  }

  /** Another step in its place; null: none. */
  replace(index: number, step: Step | null): void {
    const before = this.#steps[index]!;
    if (before !== null) this.#note(before, (uses) => uses.delete(index));
    if (step !== null) this.#note(step, (uses) => uses.add(index));
    this.#steps[index] = step;
  }

  #note(step: Step, change: (uses: Set<number>) => void): void {
    const note = (uses: Index, memory: Memory) => {
      const set = uses.get(memory) ?? new Set();
      uses.set(memory, set);
      change(set);
    };
    if (step.kind === "launch") {
      for (const memory of readsOf(step.launch)) note(this.#readers, memory);
      for (const memory of writesOf(step.launch)) note(this.#writers, memory);
    } else if (step.kind === "write") note(this.#writers, step.slice.memory);
    else {
      for (const { memory } of step.views) {
        note(this.#readers, memory);
        note(this.#writers, memory);
      }
    }
  }

  readers(memory: Memory): number[] {
    return [...(this.#readers.get(memory) ?? [])].sort((a, b) => a - b);
  }

  writers(memory: Memory): number[] {
    return [...(this.#writers.get(memory) ?? [])];
  }

  /** True if something may write the memory between two steps. */
  isWrittenBetween(memory: Memory, after: number, before: number): boolean {
    const isBetween = (index: number) => after < index && index < before;
    return this.writers(memory).some(isBetween) || (!this.temporaries.has(memory) && this.#hosts.some(isBetween));
  }

  /** True if host code runs between two steps. */
  hasHostBetween(after: number, before: number): boolean {
    return this.#hosts.some((index) => after < index && index < before);
  }
}
