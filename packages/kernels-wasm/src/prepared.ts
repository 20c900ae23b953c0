/** Prepared launches: their tables and calls are made once. Rules, and launches on open memory, are launched again in each run. */
import {
  type Launch,
  type Memory,
  memoriesOf,
  movedLaunch,
  type Place,
  type PreparedLaunches,
  type Scalar,
  type Slice,
} from "@opt/core/backend";
import { type Execution, numbersOf, type Split } from "./kernel";
import { KERNELS } from "./kernels";
import type { Block, LinearMemory } from "./memory/linear";

/** What runs launches and their calls. */
export interface Runner {
  readonly memory: LinearMemory;
  address(slice: Slice): number;
  launch(launch: Launch): void;
  call(kernel: Launch["kernel"], entry: string, split: Split, args: readonly number[]): void;
}

type Run = (scalars: readonly Scalar[] | undefined, now: OpenPlaces) => void;

/** Where open memory is: another object where it is elsewhere. */
interface OpenPlaces {
  readonly of: ReadonlyMap<Memory, Place>;
}

/** @throws OptError OUT_OF_MEMORY; then nothing is held */
export function prepared(runner: Runner, launches: readonly Launch[], open: readonly Memory[]): PreparedLaunches {
  const isOpen = new Set(open);
  const made = new PreparedCalls(runner);
  const runOf = (launch: Launch): Run => {
    if ([...memoriesOf(launch)].some((memory) => isOpen.has(memory))) return moving(launch, runner);
    if (launch.kind === "rule") return (scalars) => runner.launch(withScalars(launch, scalars));
    return made.callsOf(launch);
  };
  try {
    const runs = launches.map(runOf);
    let last: readonly Place[] | undefined;
    let now: OpenPlaces;
    return {
      run(scalars, places) {
        if (places !== last) now = { of: new Map(open.map((memory, i) => [memory, places[i]!])) };
        last = places;
        for (let i = 0; i < runs.length; i++) runs[i]!(scalars.get(i), now);
      },
      dispose: () => made.free(),
    };
  } catch (error) {
    made.free();
    throw error;
  }
}

/** A launch that follows open memory. */
function moving(launch: Launch, runner: Runner): Run {
  let last: OpenPlaces | undefined;
  let present = launch;
  return (scalars, now) => {
    if (now !== last) present = movedLaunch(launch, now.of);
    last = now;
    runner.launch(withScalars(present, scalars));
  };
}

/** Numbers are renewed; scalars on the device are where the launch has them now. */
function withScalars(launch: Launch, renewed: readonly Scalar[] | undefined): Launch {
  if (renewed === undefined) return launch;
  const { scalars } = launch as Launch<"rule">;
  return {
    ...launch,
    scalars: renewed.map((scalar, i) => (typeof scalar === "number" ? scalar : scalars[i]!)),
  } as Launch;
}

/** An execution that keeps what launches set up, and their calls for later. */
class PreparedCalls implements Execution {
  readonly #all: Block[] = [];
  /** Room for results in between, which later launches use again. */
  #spare: Block[] = [];
  #taken: Block[] = [];
  #calls: (() => void)[] = [];
  #kernel!: Launch["kernel"];

  constructor(private readonly runner: Runner) {}

  callsOf(launch: Launch): () => void {
    this.#calls = [];
    this.#kernel = launch.kernel;
    KERNELS.of(launch.kind).launch(launch, this);
    this.#spare.push(...this.#taken.splice(0));
    const calls = this.#calls;
    return calls.length === 1
      ? calls[0]!
      : () => {
          for (const call of calls) call();
        };
  }

  free(): void {
    for (const block of this.#all.splice(0)) this.runner.memory.free(block);
  }

  address(slice: Slice): number {
    return this.runner.address(slice);
  }

  scalar(): never {
    throw new Error("only rules have scalars that change");
  }

  scratch(bytes: number): number {
    const index = this.#spare.findIndex((block) => block.bytes >= bytes);
    const block = index < 0 ? this.#allocate(bytes) : this.#spare.splice(index, 1)[0]!;
    this.#taken.push(block);
    return block.address;
  }

  table(words: ArrayLike<number>): number {
    const { address } = this.#allocate(4 * words.length);
    this.runner.memory.words.set(words, address / 4);
    return address;
  }

  run(entry: string, split: Split, ...args: readonly (number | Slice)[]): void {
    const { runner } = this;
    const kernel = this.#kernel;
    const numbers = numbersOf(runner, args);
    this.#calls.push(() => runner.call(kernel, entry, split, numbers));
  }

  #allocate(bytes: number): Block {
    const block = this.runner.memory.allocate(bytes);
    this.#all.push(block);
    return block;
  }
}
