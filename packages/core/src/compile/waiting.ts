/**
 * The first run of a trace, and each that is checked, in one go: launches wait until the function has ended, and what they allocate is
 * reserved until then. So they need the memory that the trace has planned, and not what the function would hold as it is written.
 */
import type { Place } from "../backend/backend";
import { writesOf } from "../backend/launches";
import type { Memory, Scalar } from "../backend/memory";
import type { Device } from "../device/device";
import type { ScalarSource } from "../device/scalar-source";
import { untraced } from "../device/tracer";
import { type Step, usedBy } from "./steps";

/** What launches of a trace take from a run of its function. */
export interface Filled {
  /** Undefined for those that fit. */
  readonly inputs: readonly Place[] | undefined;
  readonly outputs: readonly Memory[];
  /** Scalars and host data, by what gives them in other runs. */
  readonly numbers: ReadonlyMap<ScalarSource | (() => Uint8Array), readonly Scalar[] | Uint8Array>;
}

interface Fillable {
  readonly tracing: Pick<Noted, "steps" | "made">;
  readonly outputs: readonly Memory[];
  run(filled: Filled): void;
}

/** What is known of the run so far. */
interface Noted {
  readonly device: Device | null;
  readonly steps: readonly Step[];
  readonly inputs: ReadonlyMap<Memory, unknown>;
  readonly made: ReadonlyMap<Memory, number>;
  readonly freed: ReadonlySet<Memory>;
  readonly constants: ReadonlySet<Memory>;
  /** Undefined once nothing waits. */
  waiting: Waiting | undefined;
}

/** Host code may look at what so few steps make: they run twice. Where there are more, all that waits runs. */
const FEW = 16;

export class Waiting {
  /** Without room yet. */
  readonly #reserved = new Set<Memory>();
  /** What was freed, and before which step. */
  readonly #frees: (readonly [step: number, memory: Memory])[] = [];
  /** Host data as it was written. */
  readonly #written = new Map<Step, Uint8Array>();

  constructor(private readonly noted: Noted) {}

  allocated(memory: Memory): void {
    this.#reserved.add(memory);
  }

  /** True for what was made while launches wait. */
  frees(memory: Memory): boolean {
    const isOwn = this.noted.made.has(memory);
    if (isOwn) this.#frees.push([this.noted.steps.length, memory]);
    return isOwn;
  }

  wrote(step: Step, bytes: Uint8Array): void {
    this.#written.set(step, bytes);
  }

  /** Runs all that waits. From now on nothing does. @throws OptError OUT_OF_MEMORY; then what has no room is empty */
  catchUp(): void {
    this.noted.waiting = undefined;
    try {
      this.#runAll();
    } catch (error) {
      for (const memory of this.#reserved) this.noted.device!.pool.allocate(0, memory);
      throw error;
    }
  }

  #runAll(): void {
    const { steps } = this.noted;
    let freed = 0;
    const freeBefore = (step: number) => {
      for (; freed < this.#frees.length && this.#frees[freed]![0] <= step; freed++) this.#free(this.#frees[freed]![1]);
    };
    for (const [i, step] of steps.entries()) {
      freeBefore(i);
      this.#run(step);
    }
    freeBefore(steps.length);
    for (const memory of this.#reserved) this.#take(memory);
  }

  /** Host code looks at memory now. */
  show(memory: Memory): void {
    const { steps, made } = this.noted;
    const needed = new Set([memory]);
    const makers = steps.toReversed().filter((step) => {
      const isMaker = [...writtenBy(step)].some((one) => needed.has(one));
      if (isMaker) for (const one of usedBy(step)) needed.add(one);
      return isMaker;
    });
    const isOwn = makers.every((step) => [...writtenBy(step)].every((one) => made.has(one)));
    if (makers.length > FEW || !isOwn) this.catchUp();
    else for (const step of makers.toReversed()) this.#run(step);
  }

  /** Gives room to what the function leaves behind, and constants their numbers. The rest is for the trace to place. */
  #settle(): void {
    const { made, freed, constants, device } = this.noted;
    for (const memory of made.keys()) if (!freed.has(memory) || constants.has(memory)) this.#take(memory);
    for (const [step, bytes] of this.#written)
      if (step.kind === "write" && step.isConstant && made.has(step.slice.memory)) device!.write(step.slice, bytes);
    for (const [, memory] of this.#frees) this.#giveBack(memory);
  }

  /**
   * Runs all that waits as the trace has planned it: with the numbers of this run, into its memory.
   *
   * @param trace is made from this run, or has equal steps and fits its tensors
   * @throws OptError OUT_OF_MEMORY before the first launch
   */
  fill(trace: Fillable): void {
    this.#settle();
    const { inputs, made, steps } = this.noted;
    const numbers = new Map<ScalarSource | (() => Uint8Array), readonly Scalar[] | Uint8Array>();
    for (const [i, step] of steps.entries()) {
      const other = trace.tracing.steps[i]!;
      if (other.kind === "write") numbers.set(other.bytes, this.#written.get(step)!);
      else if (step.kind === "launch" && step.launch.kind === "rule" && other.kind === "launch" && other.scalarSource)
        numbers.set(other.scalarSource, step.launch.scalars);
    }
    const memories = [...made.keys()];
    trace.run({
      inputs:
        trace.tracing === this.noted ? [...inputs.keys()].map((memory) => ({ memory, byteOffset: 0 })) : undefined,
      outputs: trace.outputs.map((memory) => memories[trace.tracing.made.get(memory)!]!),
      numbers,
    });
    this.noted.waiting = undefined;
  }

  #run(step: Step): void {
    const { device } = this.noted;
    for (const memory of usedBy(step)) this.#take(memory);
    untraced(() => {
      if (step.kind === "launch") device!.launch(step.launch);
      else if (step.kind === "write") device!.write(step.slice, this.#written.get(step)!);
    });
  }

  #take(memory: Memory): void {
    if (!this.#reserved.has(memory)) return;
    this.noted.device!.pool.allocate(memory.bytes, memory);
    this.#reserved.delete(memory);
  }

  #free(memory: Memory): void {
    if (!this.#reserved.delete(memory)) this.noted.device!.pool.free(memory);
  }

  /** It had room while host code looked. */
  #giveBack(memory: Memory): void {
    if (this.#reserved.has(memory)) return;
    this.noted.device!.pool.free(memory);
    this.#reserved.add(memory);
  }
}

const writtenBy = (step: Step): Iterable<Memory> =>
  step.kind === "launch" ? writesOf(step.launch) : step.kind === "write" ? [step.slice.memory] : [];
