/** Recomputation: a part of the forward computation keeps nothing for backward, which runs it again. */
import { tidy } from "./device/scope";
import { untraced } from "./device/tracer";
import { check, OptError } from "./errors/errors";
import { checkBody } from "./host/synchronous";
import type { Generator } from "./random/generator";
import { autocast, autocastDType } from "./tensor/autocast";
import { enableGrad, hold, isTaping, presentRecomputation, type RecomputedForward, recordedBy } from "./tensor/tape";
import type { TapeNode } from "./tensor/tape-node";
import { Tensor } from "./tensor/tensor";

type Node = TapeNode<Tensor>;
type GeneratorState = ReturnType<Generator["stateDict"]>;

const WHERE = "recompute";
const CURE = "It runs again in backward: let it do the same, and step after backward.";

/**
 * f(...inputs), whose intermediate results are freed at once and computed again in backward: less memory for more time.
 * Results, gradients and random draws of core's generators have the same bits as without it. Second gradients work, and so does `compile`.
 * As torch.utils.checkpoint with use_reentrant=False. Recomputation inside of recomputation is part of the outer one.
 *
 * @param f a synchronous function of tensors and other values, which does the same each time. Whatever it finds by itself must stay alive until backward
 * @throws OptError BAD_ARGUMENT if f is asynchronous; backward: CHANGED if f does something else the second time, or if an input or a parameter was overwritten
 * @example
 * const block = new Linear(64, 64);
 * const y = recompute((x) => block.forward(x).gelu(), rand([8, 64]));
 * y.sum().backward();
 */
export function recompute<Inputs extends readonly unknown[], Result>(
  f: (...inputs: Inputs) => Result,
  ...inputs: Inputs
): Result {
  checkBody(WHERE, f);
  if (!isTaping() || presentRecomputation() !== null) return f(...inputs);
  const first = new FirstRun(f as (...inputs: readonly unknown[]) => unknown, inputs);
  try {
    return recordedBy(first, () => tidy(() => f(...inputs)));
  } finally {
    first.end();
  }
}

/** True while a function runs again in backward. Layers that count their calls, such as BatchNorm, count the first alone. */
export function isRecomputing(): boolean {
  return presentRecomputation() instanceof SecondRun;
}

/** A draw of random numbers: where its generator stood. */
interface Draw {
  state: GeneratorState;
}

class FirstRun implements RecomputedForward {
  readonly nodes: Node[] = [];
  readonly draws: Draw[] = [];
  /** Leaves and inputs, by how often they had been overwritten. */
  readonly #versions = new Map<Tensor, number>();
  #inputs: readonly unknown[];
  #count = 0;
  readonly #precision = autocastDType();

  constructor(
    private readonly f: (...inputs: readonly unknown[]) => unknown,
    inputs: readonly unknown[],
  ) {
    this.#inputs = inputs.map((input) => {
      if (!(input instanceof Tensor)) return input;
      const held = hold(input);
      held.requiresGrad = input.requiresGrad;
      this.#versions.set(held, held.storage.version);
      return held;
    });
  }

  recorded(node: Node, inputs: readonly Tensor[]): void {
    this.nodes.push(node);
    this.#count++;
    for (const input of inputs) {
      const isLeaf = input.requiresGrad && input.node === null;
      if (isLeaf && !this.#versions.has(input)) this.#versions.set(input, input.storage.version);
    }
  }

  drawn<Result>(generator: Generator, draw: () => Result): () => Result {
    const cell: Draw = { state: generator.stateDict() };
    this.draws.push(cell);
    return () => {
      cell.state = generator.stateDict();
      return draw();
    };
  }

  /** After f: nothing to compute again where it recorded nothing. */
  end(): void {
    if (this.#count === 0) this.#release();
  }

  restore(): void {
    if (this.nodes.length === 0) return;
    for (const [tensor, version] of this.#versions) {
      check(
        tensor.storage.version === version,
        "CHANGED",
        WHERE,
        () =>
          `"${tensor.name ?? "a tensor"}" must be as it was in the forward computation, got one that was overwritten since.`,
        CURE,
      );
    }
    const second = new SecondRun(this.nodes, this.draws);
    recordedBy(second, () =>
      autocast(this.#precision, () => enableGrad(() => tidy(() => void this.f(...this.#inputs)))),
    );
    second.end();
    this.#release();
  }

  freed(): void {
    if (--this.#count === 0) this.#release();
  }

  #release(): void {
    this.nodes.length = 0;
    this.#versions.clear();
    for (const input of this.#inputs) if (input instanceof Tensor) input.dispose();
    this.#inputs = [];
  }
}

/** Gives what its ops save to the nodes of the first run. */
class SecondRun implements RecomputedForward {
  #node = 0;
  #draw = 0;

  constructor(
    private readonly nodes: readonly Node[],
    private readonly draws: readonly Draw[],
  ) {}

  recorded({ name }: Node, _: readonly Tensor[], saved: readonly Tensor[]): void {
    const first = this.nodes[this.#node++];
    if (first?.name !== name) throw changed(name, first?.name);
    first.save(saved.map(hold));
  }

  drawn<Result>(generator: Generator, draw: () => Result): () => Result {
    const cell = this.draws[this.#draw++];
    if (cell === undefined) throw changed("a random draw", undefined);
    return () =>
      untraced(() => {
        const present = generator.stateDict();
        generator.loadStateDict(cell.state);
        try {
          return draw();
        } finally {
          generator.loadStateDict(present);
        }
      });
  }

  end(): void {
    const missing = this.nodes[this.#node]?.name;
    if (missing !== undefined) throw changed(undefined, missing);
  }

  restore(): void {}
  freed(): void {}
}

function changed(got: string | undefined, was: string | undefined): OptError {
  const op = (name: string | undefined) => name ?? "no further op";
  return new OptError(
    "CHANGED",
    WHERE,
    `the function must do the same again, got ${op(got)} where ${op(was)} was.`,
    CURE,
  );
}
