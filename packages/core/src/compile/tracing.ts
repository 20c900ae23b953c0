/** Makes a trace: notes what a function does while it runs, and compares it with an earlier trace. */

import { isSlice } from "../backend/launches";
import type { Memory, Slice } from "../backend/memory";
import { type Launch, specKey } from "../backend/spec";
import type { Device } from "../device/device";
import type { ScalarSource } from "../device/scalar-source";
import { type Overwritable, type Traceable, type Tracer, untraced } from "../device/tracer";
import { check } from "../errors/errors";
import { callerLine } from "../host/caller-line";
import type { Storage } from "../tensor/storage";
import type { Tensor } from "../tensor/tensor";
import { ReadProperties } from "./read-properties";
import { type Difference, type FinalGradient, type Step, usedBy, type View } from "./steps";
import type { Waiting } from "./waiting";

/** Loaded later. */
type WaitingClass = typeof Waiting;

/** Memory that is another one in each run: of an argument, or of the gradient that a leaf has when the run begins. */
export interface Input {
  readonly memory: Memory;
  readonly byteOffset: number;
  /** The number of the argument, or the leaf. */
  readonly of: number | Tensor;
}

export class Tracing implements Tracer {
  readonly steps: Step[] = [];
  device: Device | null = null;
  /** Memory that was allocated, by its number. */
  readonly made = new Map<Memory, number>();
  readonly freed = new Set<Memory>();
  /** Freed memory that the trace still needs: constants, and what was there before and is used. */
  readonly #kept = new Set<Memory>();
  readonly constants = new Set<Memory>();
  /** What launches use. */
  readonly #used = new Set<Memory>();
  /** Of tensors that share memory there are several. */
  readonly inputs = new Map<Memory, Input[]>();
  /** Storage of tensors that host code looks at. */
  readonly storages = new Map<Memory, Storage>();
  readonly dependencies: { read(): unknown; readonly value: unknown }[] = [];
  readonly counts: { count(): number; readonly value: number }[] = [];
  /** Leaves without a gradient when the function begins. */
  readonly #withoutGradient: Tensor[] = [];
  readonly #properties = new ReadProperties();
  /** What is overwritten, but for what was allocated. */
  readonly written = new Set<Overwritable>();
  readonly checks: { view: View; body(tensor: Tensor): void }[] = [];
  readonly ends: (() => void)[] = [];
  /** What the function does last. */
  readonly lasts: (() => void)[] = [];
  /** What seems two memories is one: passes would take it for two. */
  hasAliases = false;
  /** The most bytes that lived at once. */
  peakBytes = 0;
  #bytes = 0;
  #allocations = 0;
  readonly #leaves = new Set<Traceable>();
  /** Each leaf whose gradient was looked at, and what it was when that was noted last; undefined: whatever it was. */
  readonly #gradients = new Map<Tensor, Tensor | null | undefined>();
  #difference: Difference | undefined;
  /** See `isMoved`. */
  #isMoved = false;

  /** Undefined where launches run as they come. */
  waiting: Waiting | undefined;

  /**
   * @param waits launches wait, on a device that can reserve memory
   * @param expected an earlier trace of the same signature, which this run must equal
   */
  constructor(
    tensors: readonly Tensor[],
    waits: WaitingClass | undefined,
    private readonly expected?: Tracing,
  ) {
    this.waiting = waits && new waits(this);
    for (const [index, tensor] of tensors.entries()) this.#addInput(tensor, index);
  }

  #addInput(tensor: Tensor, of: Input["of"]): void {
    const { memory, byteOffset } = tensor.memorySlice();
    this.inputs.set(memory, [...(this.inputs.get(memory) ?? []), { memory, byteOffset, of }]);
  }

  launches(device: object): void {
    check(
      this.device === null || this.device === device,
      "UNSUPPORTED",
      "compile",
      () => `a compiled function works on one device, got ${this.device!.name} and ${(device as Device).name}.`,
      "Move tensors to it outside.",
    );
    this.device = device as Device;
    if (!this.device.backend.reserve) this.waiting = undefined;
  }

  launched(launch: Launch, scalarSource: ScalarSource | undefined): void {
    this.#add({ kind: "launch", launch, scalarSource });
  }

  allocated(memory: Memory): void {
    this.made.set(memory, this.#allocations++);
    this.waiting?.allocated(memory);
    this.#bytes += memory.bytes;
    this.peakBytes = Math.max(this.peakBytes, this.#bytes);
  }

  frees(device: object, memory: Memory): boolean {
    const isMade = this.made.has(memory);
    if (isMade) this.#bytes -= memory.bytes;
    if (device !== this.device) return false;
    this.freed.add(memory);
    // What the function makes counts by its object: another may have its bytes from now on.
    const isKept = isMade
      ? this.constants.has(memory)
      : this.#used.has(memory) || this.inputs.has(memory) || this.storages.has(memory);
    if (isKept) this.#kept.add(memory);
    return isKept || !!this.waiting?.frees(memory);
  }

  wrote(device: object, slice: Slice, bytes: Uint8Array, again: (() => Uint8Array) | undefined): boolean {
    this.launches(device);
    const isConstant = again === undefined;
    const copy = isConstant || this.waiting ? bytes.slice() : bytes; // it may be the user's
    if (isConstant) this.constants.add(slice.memory);
    const step: Step = { kind: "write", slice, bytes: again ?? (() => copy), isConstant };
    this.waiting?.wrote(step, copy);
    this.#add(step);
    return this.waiting !== undefined;
  }

  aliases(): void {
    this.hasAliases = true;
  }

  overwrote(storage: Overwritable): void {
    if (!this.made.has(storage.memory)) this.written.add(storage);
  }

  overwrites(storage: Overwritable): boolean {
    return this.written.has(storage) || this.made.has(storage.memory);
  }

  leaf(tensor: Traceable, requiresGrad: boolean): void {
    const { storage } = tensor;
    if (this.#leaves.has(tensor) || (!storage.isEvictable && this.made.has(storage.memory))) return;
    this.#leaves.add(tensor);
    const hasHooks = tensor.gradientHooks !== undefined;
    this.#properties.reads(tensor, "requiresGrad", () => tensor.requiresGrad);
    if (requiresGrad || hasHooks) this.#properties.reads(tensor, "onGradient", () => tensor.gradientHooks);
  }

  gradient(traceable: Traceable, gradient: Traceable | null, isReplaced: boolean): void {
    const leaf = traceable as Tensor;
    if (this.#gradients.has(leaf)) return;
    this.#gradients.set(leaf, isReplaced ? undefined : (gradient as Tensor | null));
    if (isReplaced) return;
    if (gradient === null) {
      this.#withoutGradient.push(leaf);
      return;
    }
    const tensor = gradient as Tensor;
    check(
      !tensor.sparse,
      "UNSUPPORTED",
      "compile",
      () => "a compiled function cannot begin with row-sparse gradients.",
      "Call backward() inside, and zeroGrad() at its end.",
    );
    if (!this.made.has(tensor.storage.memory)) this.#addInput(tensor, leaf);
  }

  reads(object: object, key: string | symbol): void {
    this.#properties.reads(object, key);
  }

  writes(object: object, key: string | symbol): void {
    this.#properties.writes(object, key);
  }

  dependsOn(read: () => unknown, count?: () => number): void {
    this.dependencies.push({ read, value: untraced(read) });
    if (count !== undefined) this.counts.push({ count, value: count() });
  }

  runs(tensors: readonly Traceable[], body: (...tensors: never[]) => void): void {
    this.waiting?.catchUp();
    const views = (tensors as readonly Tensor[]).map((tensor) => this.#look(tensor));
    const leaves = [...this.#gradients.keys()];
    const isSeen = tensors.length === 0 && untraced(() => leaves.some((leaf) => leaf.grad?.sparse));
    check(
      !isSeen,
      "UNSUPPORTED",
      "compile",
      () => "a hook cannot look at row-sparse gradients in a compiled function.",
      "Use the option clip, or gather in place of gatherSparse.",
    );
    const run = (...present: Tensor[]) => {
      const before = leaves.map(({ grad }) => grad);
      (body as (...tensors: Tensor[]) => void)(...present);
      const isSame = leaves.every(({ grad }, i) => grad === before[i] || grad === null);
      check(
        isSame,
        "UNSUPPORTED",
        "compile",
        () => "a hook inside a compiled function cannot replace a gradient.",
        "Write into it: x.grad.set(...).",
      );
    };
    this.#add({ kind: "host", views, gradients: this.takeGradients(false), run });
    untraced(() => run(...(tensors as readonly Tensor[])));
  }

  before(traceable: Traceable, body: (tensor: never) => void): void {
    if (this.overwrites(traceable.storage)) return;
    this.checks.push({ view: this.#look(traceable as Tensor), body: body as (tensor: Tensor) => void });
  }

  #look(tensor: Tensor): View {
    this.storages.set(tensor.storage.memory, tensor.storage);
    return viewOf(tensor);
  }

  after(body: () => void): void {
    this.ends.push(body);
  }

  atEnd(body: () => void): void {
    this.lasts.push(body);
  }

  /** The gradients that are others than when this was asked last, or than at the start. */
  takeGradients(isEnd = true): Map<Tensor, FinalGradient> {
    const finalGradients = new Map<Tensor, FinalGradient>();
    for (const [leaf, last] of this.#gradients) {
      const grad = untraced(() => leaf.grad);
      if (grad === last || (grad?.sparse && !isEnd)) continue;
      check(
        !grad?.sparse,
        "UNSUPPORTED",
        "compile",
        () => "a compiled function cannot leave row-sparse gradients.",
        "Call zeroGrad() inside, after optimizer.step() and not before backward().",
      );
      finalGradients.set(leaf, grad !== null && this.#isOfThisRun(grad) ? viewOf(grad) : grad);
      this.#gradients.set(leaf, grad);
    }
    return finalGradients;
  }

  #isOfThisRun(tensor: Tensor): boolean {
    const { memory } = tensor.memorySlice();
    return this.made.has(memory) || this.inputs.has(memory);
  }

  /** Gives back freed memory that was kept. */
  release(): void {
    for (const memory of this.#kept) this.device!.pool.free(memory);
    this.#kept.clear();
  }

  /** The function has ended. */
  end(): void {
    for (const end of this.ends) end();
    this.#properties.end();
  }

  /** True if the memory of a tensor outlives the run, or is a gradient: what later calls may overwrite. */
  outlives({ storage }: Tensor): boolean {
    if (storage.isEvictable || !this.made.has(storage.memory)) return true;
    return untraced(() => [...this.#gradients.keys()].some(({ grad }) => grad?.storage === storage));
  }

  /** True if dependencies are what they were. */
  holds(): boolean {
    return this.dependencies.every(isAsBefore);
  }

  /** True if no call can ever begin as this run did. */
  get isOutdated(): boolean {
    return this.counts.some(({ count, value }) => count() > value);
  }

  /** True if a call can begin as this run did. */
  canBegin(): boolean {
    return this.#properties.changed === undefined && this.holds() && this.#withoutGradient.every(hasNoGradient);
  }

  /** A property that changed since, in words. */
  get changed(): string | undefined {
    return this.#properties.changed;
  }

  #add(step: Step): void {
    this.steps.push(step);
    for (const memory of usedBy(step)) this.#used.add(memory);
    if (this.expected === undefined || this.#difference !== undefined) return;
    const index = this.steps.length - 1;
    const other = this.expected.steps[index];
    if (other !== undefined && this.#isSame(step, other)) return;
    this.#difference = { index, step, other, line: callerLine() };
  }

  /** The first step that the expected trace does not have, or has and did not come. */
  get difference(): Difference | undefined {
    const index = this.steps.length;
    const other = this.expected?.steps[index];
    return this.#difference ?? (other && { index, step: undefined, other, line: "" });
  }

  /** True if the expected trace took for an input what this run found outside. Then this run is the trace to keep. */
  get isMoved(): boolean {
    return this.#isMoved;
  }

  #isSame(a: Step, b: Step): boolean {
    if (a.kind === "launch" && b.kind === "launch") {
      if ((a.scalarSource === undefined) !== (b.scalarSource === undefined)) return false;
      if (a.launch.kind !== b.launch.kind || specKey(a.launch.kernel.spec) !== specKey(b.launch.kernel.spec))
        return false;
      const compared = ({ kernel, ...rest }: Launch, { scalarSource }: { scalarSource: ScalarSource | undefined }) =>
        scalarSource === undefined ? rest : { ...rest, scalars: null };
      return this.isSameValue(compared(a.launch, a), compared(b.launch, b));
    }
    if (a.kind === "write" && b.kind === "write") {
      const isSame = a.isConstant === b.isConstant && this.isSameValue(a.slice, b.slice);
      return isSame && (!a.isConstant || isEqual(a.bytes(), b.bytes()));
    }
    return a.kind === "host" && b.kind === "host" && this.isSameValue(a.views, b.views);
  }

  /** Parts of launches, of this run and of the expected trace. */
  isSameValue(a: unknown, b: unknown): boolean {
    if (isSlice(a) && isSlice(b)) return a.length === b.length && this.#isSamePlace(a, b);
    if (Array.isArray(a) && Array.isArray(b))
      return a.length === b.length && a.every((value, i) => this.isSameValue(value, b[i]));
    if (typeof a !== "object" || a === null || typeof b !== "object" || b === null) return Object.is(a, b);
    const [keys, others] = [Object.keys(a), Object.keys(b)];
    type Fields = Record<string, unknown>;
    return (
      keys.length === others.length && keys.every((key) => this.isSameValue((a as Fields)[key], (b as Fields)[key]))
    );
  }

  #isSamePlace(a: Slice, b: Slice): boolean {
    const { inputs, made } = this.expected!;
    // What the trace found outside may be an argument of this run as well.
    const isFoundOutside = !inputs.has(b.memory) && !made.has(b.memory);
    if (isFoundOutside && a.memory === b.memory) return a.byteOffset === b.byteOffset;
    if (this.#place(a) === this.expected!.#place(b)) return true;
    // An input of the trace that was found outside as well: now it is another input, or none.
    const isMoved = inputs.has(b.memory) && a.memory === b.memory && a.byteOffset === b.byteOffset;
    this.#isMoved ||= isMoved;
    return isMoved;
  }

  /** Equal for the same place in two runs. */
  #place({ memory, byteOffset }: Slice): string {
    const input = this.inputs.get(memory)?.[0];
    if (input !== undefined) {
      const { of } = input;
      const name = typeof of === "number" ? `argument ${of}` : `gradient ${idOf(of)}`;
      return `${name} ${byteOffset - input.byteOffset}`;
    }
    const made = this.made.get(memory);
    return made === undefined ? `captured ${idOf(memory)} ${byteOffset}` : `made ${made} ${byteOffset}`;
  }
}

const hasNoGradient = ({ grad }: Tensor) => grad === null;
const isAsBefore = ({ read, value }: { read(): unknown; readonly value: unknown }) => Object.is(read(), value);

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

const ids = new WeakMap<object, number>();
let lastId = 0;

function idOf(object: object): number {
  const id = ids.get(object) ?? ++lastId;
  ids.set(object, id);
  return id;
}

export function viewOf(tensor: Tensor): View {
  return { ...tensor.memorySlice(), shape: tensor.shape, dtype: tensor.dtype };
}
