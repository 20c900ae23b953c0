/** Host code beside the launches of a step: when it runs, and which values of the host a step depends on. Eager and compiled code call the same. */
import { check } from "../errors/errors";
import { callerLine } from "../host/caller-line";
import { checkBody } from "../host/synchronous";
import { activeTracer, openTracer, type Traceable, untraced } from "./tracer";

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

/**
 * Host code between two launches: now, and at this point of each run of a compiled function, with the tensors of that run.
 *
 * @param leaves whose gradients it may look at
 * @returns true if it runs again: what it finds now need not hold then
 */
export function inEachRun<Tensors extends readonly Traceable[]>(
  tensors: readonly [...Tensors],
  body: (...tensors: Tensors) => void,
  leaves: readonly Traceable[] = [],
): boolean {
  const tracer = activeTracer();
  if (tracer === null) body(...(tensors as unknown as Tensors));
  else {
    for (const leaf of leaves) tracer.gradient(leaf, leaf.grad, false);
    tracer.runs(tensors, body as unknown as (...tensors: never[]) => void);
  }
  return tracer !== null;
}

/** Inside a compiled function: at its end, as part of it. Elsewhere nothing happens. */
export function atEndOfCall(body: () => void): void {
  activeTracer()?.atEnd(body);
}

/** What follows is of no use for good once `count()` is larger. It must not throw. */
export function outdatedBy(count: () => number): void {
  activeTracer()?.outdatedBy(count);
}

/** Stands for the call of a compiled function that runs now; null elsewhere. */
export function presentCall(): object | null {
  return openTracer();
}

/**
 * Host code on a tensor as the function finds it: now, and before each run of a compiled function with the tensor of that run.
 * Of tensors that the function writes itself it runs now alone.
 */
export function beforeEachRun<T extends Traceable>(tensor: T, body: (tensor: T) => void): void {
  asFound(tensor, () => body(tensor));
  activeTracer()?.before(tensor, body);
}

/** Ops on a tensor as the program left it: part of a compiled function only if that has written the tensor before. */
export function asFound(tensor: Traceable, body: () => void): void {
  const tracer = activeTracer();
  if (tracer === null || tracer.overwrites(tensor.storage)) body();
  else untraced(body);
}

/** Host code after the launches: now, and at the end of each run of a compiled function. */
export function afterEachRun(body: () => void): void {
  const tracer = activeTracer();
  if (tracer === null) body();
  else tracer.after(body);
}

/**
 * Says that host code runs once: a compiled function cannot do it again in each run.
 *
 * @throws OptError UNSUPPORTED inside a compiled function
 * @example
 * runsOnce("Camera", "take a picture", "Pass it as an argument.");
 */
export function runsOnce(where: string, what: string, cure = "Do it outside."): void {
  check(
    activeTracer() === null,
    "UNSUPPORTED",
    where,
    () => `a compiled function cannot ${what} (${callerLine()}).`,
    cure,
  );
}
