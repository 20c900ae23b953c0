/** The trace that is being made: what the rest of core tells it. `compile/` makes traces and runs them. */
import type { Memory, Scalar, Slice } from "../backend/memory";
import type { Launch } from "../backend/spec";
import { check } from "../errors/errors";
import { callerLine } from "../host/caller-line";
import { shared } from "../host/shared";
import { checkBody } from "../host/synchronous";

/** A launch whose scalars the host computes anew in each run: an optimizer's step. */
export interface Live {
  /** The scalars of the next run. Changes nothing. @throws OptError BAD_ARGUMENT for options out of range */
  next(): readonly Scalar[];
  /** The launch ran: counts the step. */
  commit(): void;
}

/** Memory that tensors share. */
export interface Overwritable {
  readonly memory: Memory;
  overwritten(): void;
}

/** A tensor, as far as a trace looks at it. */
export interface Traceable {
  readonly gradientHooks?: object;
  readonly requiresGrad: boolean;
  readonly grad: Traceable | null;
  readonly storage: Overwritable;
}

/** What a trace is told of. */
export interface Tracer {
  /** A launch is about to come. @throws OptError UNSUPPORTED on a second device */
  launches(device: object): void;
  launched(launch: Launch, live: Live | undefined): void;
  allocated(device: object, memory: Memory): void;
  /** Memory is no longer used. True if the trace keeps it until it ends. */
  frees(device: object, memory: Memory): boolean;
  /** Host data goes to the device. @throws OptError UNSUPPORTED unless `again` makes it anew in each run */
  wrote(device: object, slice: Slice, again: (() => Uint8Array) | undefined): void;
  overwrote(storage: Overwritable): void;
  /** True if what runs now has overwritten it. */
  overwrites(storage: Overwritable): boolean;
  /** `requiresGrad` of a tensor was looked at. */
  leaf(tensor: Traceable, requiresGrad: boolean): void;
  /** A gradient is about to be read (`isReplaced` false), cleared or assigned (true). */
  gradient(leaf: Traceable, gradient: Traceable | null, isReplaced: boolean): void;
  dependsOn(read: () => unknown): void;
  /** A trace is of no use for good once `count()` is larger. It must not throw. */
  outdatedBy(count: () => number): void;
  runs(tensors: readonly Traceable[], body: (...tensors: never[]) => void): void;
  before(tensor: Traceable, body: (tensor: never) => void): void;
  after(body: () => void): void;
}

const state = /* @__PURE__ */ shared("tracer", () => ({ active: null as Tracer | null, isPaused: false }));

/** The trace that is being made; null elsewhere, and in host code that each run calls. */
export function activeTracer(): Tracer | null {
  return state.isPaused ? null : state.active;
}

/** Also in host code that each run calls. */
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

/**
 * Inside a compiled function: it is traced again once `read()` gives another value. Elsewhere nothing happens.
 *
 * @throws OptError BAD_ARGUMENT unless it is a function
 * @example
 * const settings = { scale: 2 };
 * const step = compile((x) => {
 *   dependsOn(() => settings.scale);
 *   return x.mul(settings.scale);
 * });
 */
export function dependsOn(read: () => unknown): void {
  checkBody("dependsOn", read);
  activeTracer()?.dependsOn(read);
}

/** Host code between two launches: now, and at this point of each run of a compiled function, with the tensors of that run. */
export function inEachRun<Tensors extends readonly Traceable[]>(
  tensors: readonly [...Tensors],
  body: (...tensors: Tensors) => void,
): void {
  const tracer = activeTracer();
  if (tracer === null) body(...(tensors as unknown as Tensors));
  else tracer.runs(tensors, body as unknown as (...tensors: never[]) => void);
}

/** Host code before the launches: now, and before each run of a compiled function with the tensor of that run, unless the function computes it. */
export function beforeEachRun<T extends Traceable>(tensor: T, body: (tensor: T) => void): void {
  untraced(() => body(tensor));
  activeTracer()?.before(tensor, body);
}

/** Host code after the launches: now, and at the end of each run of a compiled function. */
export function afterEachRun(body: () => void): void {
  const tracer = activeTracer();
  if (tracer === null) body();
  else tracer.after(body);
}

/**
 * Says that something cannot be done again in each run of a compiled function.
 *
 * @throws OptError UNSUPPORTED inside a compiled function
 * @example
 * checkNotTraced("Camera", "take a picture", "Pass it as an argument.");
 */
export function checkNotTraced(where: string, what: string, cure = "Do it outside."): void {
  check(
    activeTracer() === null,
    "UNSUPPORTED",
    where,
    () => `a compiled function cannot ${what} (${callerLine()}).`,
    cure,
  );
}
