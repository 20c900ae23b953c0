/** The trace that is being made: what the rest of core tells it. `compile/` makes traces and runs them. */
import type { Memory, Slice } from "../backend/memory";
import type { Launch } from "../backend/spec";
import { shared } from "../host/shared";
import type { ScalarSource } from "./scalar-source";

/** Memory that tensors share. */
export interface Overwritable {
  readonly memory: Memory;
  /** See `Storage`. */
  readonly isEvictable: boolean;
  overwritten(): void;
}

/** A tensor, as far as a trace looks at it. */
export interface Traceable {
  readonly gradientHooks?: object;
  readonly requiresGrad: boolean;
  readonly grad: Traceable | null;
  readonly storage: Overwritable;
}

/** What core reports to a trace. */
export interface Tracer {
  /** Where launches wait until the function has ended. What it allocates is reserved, and has no contents before, but for what is shown. */
  readonly waiting: { show(memory: Memory): void } | undefined;
  /** A launch or memory is about to come. @throws OptError UNSUPPORTED on a second device */
  launches(device: object): void;
  launched(launch: Launch, scalarSource: ScalarSource | undefined): void;
  /** On the device that was told last. */
  allocated(memory: Memory): void;
  /** Memory is no longer used. True if the trace keeps it until it ends. */
  frees(device: object, memory: Memory): boolean;
  /** Host data goes to the device. `again` makes it in each run; otherwise each run has the same. True if it waits. */
  wrote(device: object, slice: Slice, bytes: Uint8Array, again: (() => Uint8Array) | undefined): boolean;
  overwrote(storage: Overwritable): void;
  /** Two memories of the next launch are parts of one array of the program. */
  aliases(): void;
  /** True if what runs now has overwritten it. */
  overwrites(storage: Overwritable): boolean;
  /** `requiresGrad` of a tensor was looked at. */
  leaf(tensor: Traceable, requiresGrad: boolean): void;
  /** A gradient is about to be read (`isReplaced` false), cleared or assigned (true). */
  gradient(leaf: Traceable, gradient: Traceable | null, isReplaced: boolean): void;
  /** A trace is valid for the present value. It is of no use for good once `count()` is larger. */
  dependsOn(read: () => unknown, count?: () => number): void;
  /** A property of an observed object is about to be read, see `observed`. */
  reads(object: object, key: string | symbol): void;
  /** It is about to be written. */
  writes(object: object, key: string | symbol): void;
  runs(tensors: readonly Traceable[], body: (...tensors: never[]) => void): void;
  before(tensor: Traceable, body: (tensor: never) => void): void;
  after(body: () => void): void;
  /** At the end of the function that is traced, as part of it. */
  atEnd(body: () => void): void;
}

const state = /* @__PURE__ */ shared("tracer", () => ({ active: null as Tracer | null, isPaused: false }));

/** The trace that is being made; null elsewhere, and in host code that each run calls. */
export function activeTracer(): Tracer | null {
  return state.isPaused ? null : state.active;
}

/** The same, also in host code that each run calls. It stands for the traced call. */
export function openTracer(): Tracer | null {
  return state.active;
}

/** Runs `body` and tells `tracer` of it. */
export function withTracer<Result>(tracer: Tracer, body: () => Result): Result {
  const { active, isPaused } = state;
  state.active = tracer;
  state.isPaused = false;
  try {
    return body();
  } finally {
    state.active = active;
    state.isPaused = isPaused;
  }
}

/** Runs `body` as if nothing were traced. */
export function untraced<Result>(body: () => Result): Result {
  const before = state.isPaused;
  state.isPaused = true;
  try {
    return body();
  } finally {
    state.isPaused = before;
  }
}
