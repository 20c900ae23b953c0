/** Recorded launches: their tables and calls are made once. Only rules are launched anew, with the scalars of each replay. */
import type { Launch, PlainKind, RecordedLaunches, Slice } from "@opt/core/backend";
import { type Execution, type KernelSource, numbersOf, type Split } from "./kernel";
import { KERNELS } from "./kernels";
import type { Block, LinearMemory } from "./memory/linear";

/** What runs launches and their calls. */
export interface Runner {
  readonly memory: LinearMemory;
  address(slice: Slice): number;
  launch(launch: Launch): void;
  call(kernel: Launch["kernel"], entry: string, split: Split, args: readonly number[]): void;
}

/** @throws OptError OUT_OF_MEMORY; then nothing is held */
export function recorded(runner: Runner, launches: readonly Launch[]): RecordedLaunches {
  const prepared = new Prepared(runner);
  try {
    const replays = launches.map((launch) => (launch.kind === "rule" ? launch : prepared.callsOf(launch)));
    return {
      replay(scalars) {
        for (let i = 0; i < replays.length; i++) {
          const one = replays[i]!;
          if (typeof one === "function") one();
          else runner.launch({ ...one, scalars: scalars.get(i) ?? one.scalars });
        }
      },
      dispose: () => prepared.free(),
    };
  } catch (error) {
    prepared.free();
    throw error;
  }
}

/** An execution that keeps what launches set up, and their calls for later. */
class Prepared implements Execution {
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
    (KERNELS[launch.kind as PlainKind] as KernelSource<Launch["kind"]>).launch(launch, this);
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
