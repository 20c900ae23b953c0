/** What a recorded body does, while it runs: its launches in order, and what must still hold when they are replayed. */
import type { Memory, Scalar } from "../backend/memory";
import type { Launch } from "../backend/spec";
import { check } from "../errors/errors";
import { shared } from "../host/shared";
import { checkBody } from "../host/synchronous";
import { checkRepeatable, setRecorded } from "./repeatable";
import type { Versioned } from "./versions";

/** A recorded rule launch, step after step. */
export interface Repeated {
  /** The last launch before the next hooks, or the body's end, was recorded: replays go as far in one go. */
  recorded(): void;
  /** @throws OptError BAD_STATE, BAD_ARGUMENT if the step can no longer be what was recorded */
  check(): void;
  /** Counts the next step, of which nothing has changed since `check`. Returns the scalars of its launch. */
  renew(): readonly Scalar[];
  /** Counts it no more: a later launch was refused. */
  undo(): void;
  /** It was launched. */
  launched(): void;
}

/** Numbers drawn on the host: again for each replay. */
export interface Draw {
  readonly memory: Memory;
  readonly byteOffset: number;
  bytes(): Uint8Array;
}

/** A tensor with a gradient. */
export interface Leaf {
  readonly grad: object | null;
  readonly requiresGrad: boolean;
}

/** A leaf that a backward adds to. */
export interface Reached {
  readonly gradientHooks?: object;
}

/** How the body left a tensor's gradient. */
export interface Left {
  readonly grad: object | null;
  readonly requiresGrad: boolean;
}

/** A tensor. */
export interface Used {
  readonly isDisposed: boolean;
  readonly requiresGrad: boolean;
  /** See `changes`. */
  isWatched: boolean;
  /** How often another took its place. */
  readonly replaced?: number;
  readonly storage: { readonly memory: Memory };
}

/** What a replay does in one go: all that was launched between two hooks. */
export class Segment {
  readonly launches: Launch[] = [];
  readonly repeated = new Map<number, Repeated>();
  readonly draws: Draw[] = [];
  /** Throw where the body would now do something else. */
  readonly guards: (() => void)[] = [];
  readonly written = new Set<Versioned>();

  /** @throws what guards and steps throw if the body would now do something else */
  check(): void {
    for (const guard of this.guards) guard();
    for (const step of this.repeated.values()) step.check();
  }
}

/** How the body met a gradient first: what was there mattered, or was replaced. */
interface Touch {
  readonly start: object | null;
  readonly replaced: boolean;
}

const state = /* @__PURE__ */ shared("recorder", () => ({ active: null as Recorder | null }));

/** The recorder of the step that is being recorded, also while one of its hooks runs. */
export function activeRecorder(): Recorder | null {
  return state.active;
}

/**
 * What stands for the step that is being recorded: one object in all of its body; null elsewhere, and in hooks.
 *
 * @example
 * const calls = new WeakMap<object, number>();
 * const step = recordedStep();
 * if (step !== null) calls.set(step, (calls.get(step) ?? 0) + 1);
 */
export function recordedStep(): object | null {
  return state.active === null || state.active.isPaused ? null : state.active;
}

/** Runs what a recorded step does only the first time: making optimizer state. */
export function once<Result>(body: () => Result): Result {
  return state.active === null ? body() : state.active.pause(body);
}

/** Runs hooks: now, and again in each replay at this point of the step: those of hooks by these. Replays find the memory that they look into. */
export function hooks(body: () => void, memories: readonly Memory[] = []): void {
  if (state.active === null || state.active.isPaused) body();
  else state.active.runHooks(body, memories);
}

/**
 * Inside a recorded step: `check` runs before each replay, and throws if the body would now do something else.
 * Elsewhere it is not called.
 *
 * @throws OptError BAD_ARGUMENT unless it is a function
 * @example
 * const seen = model.training;
 * guardReplays(() => check(model.training === seen, "BAD_STATE", "model", () => "training was switched.", "Record again."));
 */
export function guardReplays(check: () => void): void {
  checkBody("guardReplays", check);
  state.active?.guard(check);
}

export class Recorder {
  readonly parts: (Segment | (() => void))[] = [new Segment()];
  /** Memory that was allocated by the body. */
  readonly made = new Set<Memory>();
  /** Memory that was freed meanwhile: launches still use it. */
  readonly freed: Memory[] = [];
  /** Memory that hooks look into. */
  readonly held = new Set<Memory>();
  /** What the body read, wrote or viewed: it would be refused where one of them is disposed. */
  readonly used = new Set<Used>();
  readonly leaves = new Map<Leaf, Left>();
  /** What backward added to, without hooks. */
  readonly reached = new Set<Reached>();
  readonly #touched = new Map<Leaf, Touch>();
  #segment = this.parts[0] as Segment;
  /** The order of the first op that the body put on the tape. */
  #firstTaped = Number.POSITIVE_INFINITY;
  #paused = false;
  #inHook = false;

  /** @param device what is recorded; launches elsewhere are refused */
  constructor(private readonly device: object) {}

  /** True while nothing is recorded: in hooks, and in what is done only once. */
  get isPaused(): boolean {
    return this.#paused;
  }

  /** Records while `body` runs. @throws OptError UNSUPPORTED inside of another recording */
  run<Result>(body: () => Result): Result {
    checkRepeatable("record", "another recording");
    check(state.active === null, "UNSUPPORTED", "record", () => "a hook of a recorded step must not record another.");
    state.active = this;
    setRecorded(true);
    try {
      return body();
    } finally {
      state.active = null;
      setRecorded(false);
    }
  }

  /** Runs `body` without recording it. */
  pause<Result>(body: () => Result): Result {
    if (this.#paused) return body();
    this.#paused = true;
    setRecorded(false);
    try {
      return body();
    } finally {
      this.#paused = false;
      setRecorded(true);
    }
  }

  runHooks(body: () => void, memories: readonly Memory[]): void {
    this.#endSegment();
    this.parts.push(body);
    for (const memory of memories) this.held.add(memory);
    this.#inHook = true;
    try {
      this.pause(body);
    } finally {
      this.#inHook = false;
    }
    this.#segment = new Segment();
    this.parts.push(this.#segment);
  }

  #endSegment(): void {
    for (const repeated of this.#segment.repeated.values()) repeated.recorded();
  }

  /** @throws OptError UNSUPPORTED for another device's work */
  checkDevice(device: object & { readonly name: string }): void {
    check(
      device === this.device || this.#paused,
      "UNSUPPORTED",
      "record",
      () => `a recorded step runs on one device, got work on ${device.name}.`,
      "Do it before or after device.record.",
    );
  }

  launched(launch: Launch, repeated: Repeated | undefined): void {
    if (this.#paused) return;
    if (repeated !== undefined) this.#segment.repeated.set(this.#segment.launches.length, repeated);
    this.#segment.launches.push(launch);
  }

  allocated(memory: Memory): void {
    if (!this.#paused) this.made.add(memory);
  }

  uses(tensor: Used): void {
    if (!this.#paused) this.used.add(tensor);
  }

  /** True if the recording takes over memory that the device should free: launches may use it. */
  takes(device: object, memory: Memory): boolean {
    if (device === this.device) this.freed.push(memory);
    return device === this.device;
  }

  /** Host data that goes to the device. @throws OptError UNSUPPORTED if a replay cannot make it again */
  wrote(draw: Draw | undefined): void {
    if (this.#paused) return;
    if (draw === undefined) checkRepeatable("record", "data from the host");
    else this.#segment.draws.push(draw);
  }

  /** @param check throws if what it knows of has changed since */
  guard(check: () => void): void {
    if (!this.#paused) this.#segment.guards.push(check);
  }

  overwrote(storage: Versioned): void {
    if (!this.#paused) this.#segment.written.add(storage);
  }

  /** True if the body has overwritten it since the last hooks ran: what a replay finds there does not matter. */
  overwrites(storage: Versioned): boolean {
    return this.#segment.written.has(storage);
  }

  /**
   * The body reads, adds to (`replaced` false), clears or assigns (true) a gradient.
   * @throws OptError UNSUPPORTED in a hook: a replay has launches where hooks expect gradients
   */
  touchGradient(leaf: Leaf, grad: object | null, replaced: boolean): void {
    check(
      !this.#inHook,
      "UNSUPPORTED",
      "record",
      () => "hooks of a recorded step must not look at gradients.",
      "Clip and scale inside the body, before optimizer.step().",
    );
    if (!this.#touched.has(leaf)) this.#touched.set(leaf, { start: grad, replaced });
  }

  /** An op was put on the tape, where orders rise. */
  taped(order: number): void {
    this.#firstTaped = Math.min(this.#firstTaped, order);
  }

  /** @throws OptError UNSUPPORTED for what was computed before: its tape is gone when the body runs again */
  checkTaped(order: number): void {
    check(
      order >= this.#firstTaped || this.#paused,
      "UNSUPPORTED",
      "record",
      () => "a recorded step must compute what it calls backward on, got a tape from before.",
      "Move the forward computation into the step.",
    );
  }

  /** The body has ended. @throws OptError UNSUPPORTED if its next iteration would meet other gradients */
  finish(): void {
    this.#endSegment();
    for (const [leaf, { start, replaced }] of this.#touched) {
      const { grad, requiresGrad } = leaf;
      check(
        replaced || grad === start,
        "UNSUPPORTED",
        "record",
        () =>
          `a recorded step must meet the gradients that it leaves, got one that is ${grad ? "new" : "gone"} at its end.`,
        "Call zeroGrad() of all parameters, inside and before.",
      );
      this.leaves.set(leaf, { grad, requiresGrad });
    }
  }
}
