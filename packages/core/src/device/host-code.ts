/**
 * Host code beside launches: what runs when in a compiled function. A checked call is as the first.
 *
 * | verb | eager | first call | replay | example of use |
 * |---|---|---|---|---|
 * | `inEachRun` | now | now | between the same two launches | hooks of an optimizer |
 * | `beforeEachRun` | now | now | before the first launch | checks of indices |
 * | `afterEachRun` | now | after the last launch | after the last launch | an average counts its updates |
 * | `asFound` | now | now | only what the trace has of it | master weights follow their parameter |
 * | `atEndOfCall` | never | at the end, traced | only what the trace has of it | evicted memory is freed again |
 * | `dependsOn` | never | reads the value | reads it first: another value needs another trace | the modules of a `ModuleList` |
 * | `runsOnce` | does nothing | throws | | seeds of a generator |
 */
import { check } from "../errors/errors";
import { callerLine } from "../host/caller-line";
import { checkBody } from "../host/synchronous";
import { activeTracer, type Traceable, untraced } from "./tracer";

/**
 * Runs `body` now, and at this point of each replay, with the tensors of that replay.
 *
 * @param leaves whose gradients it may look at
 * @returns true in a compiled function: a replay may find something else
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

/** Runs `body` now, and before each replay with its tensor. A tensor that the function has written is looked at now only. */
export function beforeEachRun<T extends Traceable>(tensor: T, body: (tensor: T) => void): void {
  const tracer = activeTracer();
  if (tracer?.overwrites(tensor.storage)) tracer.waiting?.show(tensor.storage.memory);
  asFound(tensor, () => body(tensor));
  tracer?.before(tensor, body);
}

/** Runs host code now, or at the end of each run of a compiled function. */
export function afterEachRun(body: () => void): void {
  const tracer = activeTracer();
  if (tracer === null) body();
  else tracer.after(body);
}

/** Runs ops on a tensor now. They are part of a trace only if the compiled function has written the tensor before. */
export function asFound(tensor: Traceable, body: () => void): void {
  const tracer = activeTracer();
  if (tracer === null || tracer.overwrites(tensor.storage)) body();
  else untraced(body);
}

/** Runs `body` at the end of a compiled function, as part of its trace. Elsewhere it never runs. */
export function atEndOfCall(body: () => void): void {
  activeTracer()?.atEnd(body);
}

/**
 * Inside a compiled function: it is traced again once `read()` gives another value. Elsewhere nothing happens.
 *
 * @param count says that old values never come back: older traces are freed once it is larger. It must not throw
 * @throws OptError BAD_ARGUMENT unless it is a function
 * @example
 * let scale = 2;
 * const step = compile((x) => {
 *   dependsOn(() => scale);
 *   return x.mul(scale);
 * });
 */
export function dependsOn(read: () => unknown, count?: () => number): void {
  checkBody("dependsOn", read);
  if (count !== undefined) checkBody("dependsOn", count);
  activeTracer()?.dependsOn(read, count);
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
