/** Compiled functions: traced once for each signature, then run without JavaScript's share of the work. */

import { allocations } from "../device/allocation-trace";
import { collect, track } from "../device/scope";
import { activeTracer, withTracer } from "../device/tracer";
import { watching } from "../device/watcher";
import { checkValue } from "../errors/check-value";
import { check, OptError } from "../errors/errors";
import { checkOptions } from "../errors/options";
import { inspectSymbol } from "../host/inspect-symbol";
import { checkSynchronous } from "../host/synchronous";
import { autocastDType } from "../tensor/autocast";
import { unmark } from "../tensor/copied";
import { isTaping, noGrad } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";
import type { Explanation } from "./explain";
import { LATER } from "./later";
import type * as Messages from "./messages";
import { checkMemory, Trace, type TraceMemory } from "./trace";
import { Tracing } from "./tracing";
import { type Arguments, checkResult, flattenArguments, mapTensors } from "./tree";

export interface CompileOptions {
  /** Which calls run the function again, its launches compared with the trace: 2, 4, 8, ... of each trace ("spaced"), all, or none. Default "spaced". */
  readonly check?: "always" | "spaced" | "never";
  /**
   * The most bytes of temporaries that a call holds at once: a number, or a text such as "500MB" or "1.5GiB". Where a trace needs more,
   * it computes cheap results (elementwise ops, norms, casts) again for backward in place of keeping them. Default: no limit.
   */
  readonly memory?: number | string;
  /** @internal Default true. */
  readonly passes?: boolean;
}

/** A compiled function: called as the function that it was made from. */
export interface Compiled<Args extends unknown[], Result> {
  (...args: Args): Result;
  /** What the last trace consists of. @throws OptError BAD_STATE before the first call */
  explain(): Explanation;
  /** Has the next call checked, in addition to those of `check`. */
  checkNext(): void;
  /** Frees the memory of all traces. A later call traces again. */
  dispose(): void;
  [Symbol.dispose](): void;
}

/** Traces that differ only in plain arguments: more than these are worth a warning. */
const MANY = 8;
/** So many calls in a row with one signature should need no more traces and checks. */
const MANY_RUNS = 12;
/** The oldest of more traces is dropped. */
const MOST = 32;

interface Entry {
  readonly texts: readonly string[];
  readonly key: string;
  readonly trace: Trace;
  calls: number;
  /** A later run was equal. */
  isConfirmed: boolean;
  /** It took the place of a first trace that was another one. */
  readonly isSecond: boolean;
}

/** Traces are freed with the function that nobody holds any more. */
const dropped = new FinalizationRegistry<Set<TraceMemory>>((memories) => {
  for (const memory of memories) memory.release();
});

/**
 * Compiles a function of tensors, such as a training step. The first call with a signature runs it and notes its launches, which run in
 * one go then and in later calls, bit for bit as in the function.
 *
 * Arguments are trees of tensors, numbers, strings and booleans. Any tensor of the same shape, dtype and device fits; other values are
 * part of the signature, as are properties of modules, frozen layers, options and state of optimizers. Results are tensors of their own
 * and carry no gradient. Learning rates, step counts, random numbers, loss scales and hooks are followed. What else JavaScript decides in
 * the first call is fixed: branches, loop counts, numbers, host data, and which tensors it finds outside. Some calls check that.
 *
 * @throws OptError BAD_ARGUMENT for other arguments or results, asynchronous functions, and too little `memory`; UNSUPPORTED for reading a tensor,
 * `keep()` and another compiled function inside; CHANGED if a call does something else than the first
 * @example
 * const model = parameter([1, 2]);
 * const step = compile((x) => {
 *   const loss = model.sub(x).pow(2).sum();
 *   loss.backward();
 *   clipGradNorm([model], 1);
 *   model.grad = null;
 *   return loss;
 * });
 * await step(tensor([3, 4])).item(); // 8
 */
export function compile<Args extends unknown[], Result>(
  f: (...args: Args) => Result,
  options: CompileOptions = {},
): Compiled<Args, Result> {
  checkValue(typeof f === "function", "compile", "the first argument", "a function", f, METHOD_CURE);
  checkOptions("compile", options, { check: "any", memory: "any", passes: "boolean" });
  const { check: when = "spaced", passes = true, memory } = options;
  const isKnown = when === "always" || when === "spaced" || when === "never";
  checkValue(isKnown, "compile", "check", '"always", "spaced" or "never"', when);
  checkMemory(memory);
  const compiled = new CompiledFunction(f as (...args: unknown[]) => unknown, when, passes, memory);
  const call = (...args: Args) => compiled.call(args) as Result;
  const dispose = () => compiled.dispose();
  const explain = () => compiled.explain();
  const checkNext = () => {
    compiled.isNextChecked = true;
  };
  const result = Object.assign(call, { explain, checkNext, dispose, [Symbol.dispose]: dispose });
  Object.defineProperty(result, inspectSymbol, { value: () => compiled.summary() });
  dropped.register(result, compiled.memories);
  return result;
}

const METHOD_CURE = "Write compile((x) => model.forward(x)).";

/** True for a method of a class or object, by its text. A bare one fails with a TypeError of the engine. */
const isMethod = (f: unknown) => /^(?!async\b|function\b)[\w$]+\s*\(/.test(String(f));

/** A run of the function, with the tensors among its results that it made. */
interface Ran {
  readonly tracing: Tracing;
  readonly result: unknown;
  readonly own: ReadonlySet<unknown>;
}

/** Results without gradients, in memory that no later call overwrites: copies of what is not made for this call alone. */
function ownResults(result: unknown, tracing: Tracing): unknown {
  const known = new Map<Tensor, Tensor>();
  const own = (tensor: Tensor): Tensor => {
    const result = tensor.node === null ? tensor : tensor.detach();
    return tracing.outlives(tensor) && !tensor.sparse ? noGrad(() => result.detach().clone()) : result;
  };
  return mapTensors(result, (tensor) => {
    const result = known.get(tensor) ?? own(tensor);
    known.set(tensor, result);
    return result;
  });
}

/** Frees what a run has made, where its results reach nobody. */
function discard({ tracing, result, own }: Ran): void {
  mapTensors(result, (tensor) => own.has(tensor) && tensor.dispose());
  tracing.release();
}

/** Ends a run whose results reach nobody. */
function abandon(ran: Ran): void {
  ran.tracing.waiting?.catchUp();
  ran.tracing.end();
  discard(ran);
}

/** True if memory that the run made stays, but for results and gradients. */
function keepsSome({ tracing, result }: Ran): boolean {
  const { made, freed, steps } = tracing;
  const left = new Set<unknown>();
  mapTensors(result, (tensor) => left.add(tensor.memorySlice().memory));
  for (const gradients of [tracing.takeGradients(), ...steps.map((step) => step.kind === "host" && step.gradients)])
    for (const grad of gradients ? gradients.values() : []) if (grad && "memory" in grad) left.add(grad.memory);
  return [...made.keys()].some((memory) => !freed.has(memory) && !left.has(memory));
}

class CompiledFunction {
  /** What all traces hold. */
  readonly memories = new Set<TraceMemory>();
  /** The last used is the last. */
  readonly #entries: Entry[] = [];
  #last: Entry | undefined;
  isNextChecked = false;
  #hasWarned = false;
  /** For each signature: how many calls in a row ran the function, though nobody asked for it. */
  readonly #runs = new Map<string, number>();

  constructor(
    private readonly f: (...args: unknown[]) => unknown,
    private readonly when: "always" | "spaced" | "never",
    private readonly passes: boolean,
    private readonly memory: CompileOptions["memory"],
  ) {}

  call(args: readonly unknown[]): unknown {
    check(
      activeTracer() === null,
      "UNSUPPORTED",
      "compile",
      () => "a compiled function cannot call another one.",
      "Compile the outer function alone.",
    );
    const given = flattenArguments(args);
    const key = `${isTaping()} ${autocastDType()} ${given.texts.join()}`;
    const entry = this.#find(key, given.tensors);
    if (entry === undefined) {
      this.#countRun(key);
      return this.#trace(args, given, key);
    }
    check(
      !entry.trace.isRunning,
      "UNSUPPORTED",
      "compile",
      () => "a hook cannot call the compiled function that it is part of.",
      "Call the function itself.",
    );
    entry.calls++;
    this.#last = entry;
    const isAsked = this.isNextChecked || watching.watcher?.isEager || this.when === "always";
    this.isNextChecked = false;
    const { calls, isConfirmed } = entry;
    const isDue = this.when === "spaced" && (!isConfirmed || (calls & (calls - 1)) === 0);
    const isMoved = entry.trace.takeMoved();
    if (!isAsked && !isDue && !isMoved) {
      if (this.#runs.size > 0) this.#runs.delete(key);
      return entry.trace.run();
    }
    if (!isAsked) this.#countRun(key);
    return this.#check(args, given, entry);
  }

  /** A function that is never replayed says so. */
  #countRun(key: string): void {
    if (this.#hasWarned) return;
    const runs = (this.#runs.get(key) ?? 0) + 1;
    this.#runs.set(key, runs);
    if (runs < MANY_RUNS) return;
    const last = this.#entries.findLast((entry) => entry.key === key);
    this.#warn((messages) => messages.neverReplayed(runs, last?.trace.tracing.changed));
  }

  #find(key: string, tensors: readonly Tensor[]): Entry | undefined {
    const index = this.#entries.findLastIndex((entry) => entry.key === key && entry.trace.fits(tensors));
    if (index < 0) return undefined;
    const [entry] = this.#entries.splice(index, 1);
    this.#entries.push(entry!);
    return entry;
  }

  /** Runs the function as usual. */
  #run(args: readonly unknown[], tracing: Tracing): Ran {
    const { f } = this;
    const body = () => {
      const result = f(...args);
      for (const last of tracing.lasts) last();
      checkSynchronous("compile", result);
      checkResult(result);
      return ownResults(result, tracing);
    };
    try {
      const { result, kept } = withTracer(tracing, () => collect("compile", body));
      for (const tensor of kept) track(tensor);
      mapTensors(result, unmark); // a run's results are tensors of their own
      return { tracing, result, own: new Set(kept) };
    } catch (error) {
      tracing.waiting?.catchUp();
      tracing.release();
      if (!(error instanceof TypeError && isMethod(f))) throw error;
      const problem = `the function must work without \`this\`, got a method that failed: ${error.message}.`;
      throw new OptError("BAD_ARGUMENT", "compile", problem, METHOD_CURE, { cause: error });
    }
  }

  #trace(args: readonly unknown[], { tensors, texts }: Arguments, key: string): unknown {
    const ran = this.#run(args, this.#tracing(tensors));
    const { tracing } = ran;
    const trace = this.#ended(ran);
    // State that the first step has made is there from now on: the next call is traced again.
    if (tracing.holds()) this.#add(ran, trace, texts, key, false);
    else trace?.dispose();
    tracing.release();
    return ran.result;
  }

  /** Launches wait for the trace, which needs less memory than they do, unless somebody looks at each. */
  #tracing(tensors: readonly Tensor[], expected?: Tracing): Tracing {
    const isWatched = watching.watcher ?? allocations.trace?.isOn;
    return new Tracing(tensors, this.passes && !isWatched ? LATER.code?.Waiting : undefined, expected);
  }

  /** Runs what waits, and what the function does after its last launch. The trace, if that was needed. @throws as `#traceOf` */
  #ended(ran: Ran): Trace | undefined {
    const { tracing } = ran;
    let trace: Trace | undefined;
    try {
      if (tracing.waiting) {
        trace = this.#traceOf(ran);
        tracing.waiting.fill(trace);
      }
    } catch (error) {
      trace?.dispose();
      abandon(ran);
      throw error;
    }
    tracing.end();
    return trace;
  }

  /** @throws OptError BAD_ARGUMENT for too small a budget, UNSUPPORTED; then nothing is held */
  #traceOf({ tracing, result, own }: Ran): Trace {
    return new Trace(tracing, result, own, this.passes, this.memory);
  }

  /** Runs the function once more. @throws OptError CHANGED if it does something else */
  #check(args: readonly unknown[], { tensors, texts }: Arguments, entry: Entry): unknown {
    entry.trace.giveWay();
    const tracing = this.#tracing(tensors, entry.trace.tracing);
    const ran = this.#run(args, tracing);
    const { difference, isMoved } = tracing;
    if (difference === undefined && !isMoved) {
      const isKeeping = keepsSome(ran);
      if (isKeeping) tracing.waiting?.catchUp();
      else tracing.waiting?.fill(entry.trace);
      tracing.end();
      if (!entry.isConfirmed && isKeeping) {
        this.#drop(entry);
        discard(ran);
        const problem = "a compiled function cannot keep() a tensor that each call makes, got one.";
        throw new OptError("UNSUPPORTED", "compile", problem, "Return it: later calls do not run keep().");
      }
      entry.isConfirmed = true;
      tracing.release();
      return ran.result;
    }
    this.#drop(entry);
    // What was made once, in the first call, makes one difference.
    const mayReplace = !entry.isConfirmed && !entry.isSecond;
    if (difference === undefined || mayReplace) {
      this.#add(ran, this.#ended(ran), texts, entry.key, entry.isSecond || difference !== undefined);
      tracing.release();
      return ran.result;
    }
    abandon(ran);
    throw (
      LATER.code?.messages.changed(difference, tracing) ??
      new OptError("CHANGED", "compile", "each call must do the same.")
    );
  }

  /** @throws as `#traceOf` */
  #add(ran: Ran, made: Trace | undefined, texts: Entry["texts"], key: string, isSecond: boolean): void {
    let trace = made;
    try {
      trace ??= this.#traceOf(ran);
    } catch (error) {
      discard(ran);
      throw error;
    }
    for (const old of [...this.#entries]) if (old.trace.tracing.isOutdated) this.#drop(old);
    this.memories.add(trace.memory);
    const entry: Entry = { texts, key, trace, calls: 1, isConfirmed: false, isSecond };
    this.#entries.push(entry);
    this.#last = entry;
    if (this.#entries.length > MANY && !this.#hasWarned) {
      const { texts, trace } = this.#entries.at(-2)!;
      this.#warn((messages) => messages.manyTraces(MANY, texts, entry.texts, trace.tracing.changed));
    }
    if (this.#entries.length > MOST) this.#drop(this.#entries[0]!);
  }

  #warn(text: (messages: typeof Messages) => string): void {
    this.#hasWarned = true;
    this.#runs.clear();
    if (LATER.code) console.warn(text(LATER.code.messages));
  }

  #drop(entry: Entry): void {
    this.#entries.splice(this.#entries.indexOf(entry), 1);
    entry.trace.dispose();
    this.memories.delete(entry.trace.memory);
  }

  explain(): Explanation {
    check(
      this.#last !== undefined,
      "BAD_STATE",
      "explain",
      () => "there is no trace yet.",
      "Call the compiled function first, twice with an optimizer.",
    );
    return this.#last.trace.explain();
  }

  summary(): string {
    if (this.#last === undefined) return "Compiled(not called yet)";
    const { launches, fused, peakBytes } = this.#last.trace.explain();
    return `Compiled(traces=${this.#entries.length}, launches=${launches}, fused=${fused}, peakBytes=${peakBytes})`;
  }

  dispose(): void {
    for (const entry of [...this.#entries]) this.#drop(entry);
    this.#last = undefined;
  }
}
