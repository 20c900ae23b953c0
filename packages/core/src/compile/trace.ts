/** A trace, ready to run: the launches of a function without the tensors, tape and checks that led to them. */
import type { Backend, Place, PreparedLaunches } from "../backend/backend";
import { memoriesOf, movedLaunch, withSlices, writesOf } from "../backend/launches";
import type { Memory, Scalar, Slice } from "../backend/memory";
import type { Launch } from "../backend/spec";
import type { Device } from "../device/device";
import type { ScalarSource } from "../device/scalar-source";
import type { Overwritable } from "../device/tracer";
import { watching } from "../device/watcher";
import { Storage } from "../tensor/storage";
import { Tensor } from "../tensor/tensor";
import { type Explanation, explain } from "./explain";
import { LATER } from "./later";
import { type OptimizedTrace, plan } from "./passes/memory-plan";
import { type FinalGradient, type Step, usedBy, type View } from "./steps";
import { type Input, type Tracing, viewOf } from "./tracing";
import { mapTensors, mapTree } from "./tree";
import type { Filled } from "./waiting";

/** Bytes of the option `memory`, from when passes are there. @throws OptError BAD_ARGUMENT */
export const checkMemory = (memory: number | string | undefined) => LATER.code?.bytesOf(memory);

/** A tensor in the result of the function: a view, or a tensor that was there before. */
class Placeholder {
  constructor(readonly view: View) {}
}

const isPlaceholder = (value: unknown): value is Placeholder => value instanceof Placeholder;

/** What runs in one go: host data is written first, then launches. */
interface Segment {
  readonly kind: "launches";
  readonly hostData: readonly Extract<Step, { kind: "write" }>[];
  readonly scalarSources: ReadonlyMap<number, ScalarSource>;
  readonly launches: readonly Launch[];
  readonly prepared: PreparedLaunches;
  /** What it overwrites of what was there before: as it is in each run, and by its memory where that is another one. */
  readonly overwritten: readonly Overwritable[];
  readonly overwrittenInputs: readonly Memory[];
}

type Part = Segment | Extract<Step, { kind: "host" }>;

interface StoragePlace {
  readonly storage: Storage;
  readonly byteOffset: number;
}

/** Where an input was. */
interface InputPlace {
  readonly of: Input["of"];
  /** The tensor itself, for the gradient of a leaf. An argument that is dropped must not live on here. */
  readonly gradient: Tensor | null;
  readonly storage: Storage;
  readonly memory: Memory;
  readonly start: number;
}

/** Memory of the trace in one run. */
type Places = ReadonlyMap<Memory, StoragePlace>;

/** What a trace holds. It does not refer to the function, which may refer to it. */
export class TraceMemory {
  device: Device | null = null;
  readonly pinned = new Set<Memory>();
  readonly storages: Storage[] = [];
  readonly prepared: PreparedLaunches[] = [];
  /** Of temporaries. */
  arena: Storage | null = null;

  /** Gives back what only runs need. */
  giveWay(): void {
    for (const one of this.prepared.splice(0)) if (!this.device!.pool.isClosed) one.dispose();
    this.arena?.release();
    this.arena = null;
  }

  release(): void {
    const { pool } = this.device ?? {};
    if (pool === undefined) return;
    this.giveWay();
    for (const memory of this.pinned) pool.unpin(memory);
    this.pinned.clear();
    for (const storage of this.storages.splice(0)) storage.release();
  }
}

export class Trace {
  readonly #optimized: OptimizedTrace;
  readonly #device: Device | null;
  readonly #result: unknown;
  readonly #finalGradients: ReadonlyMap<Tensor, FinalGradient>;
  /** Those that get gradients. */
  readonly #leaves: readonly Tensor[];
  readonly #inputs: readonly Input[];
  /** Where inputs were at the last call: the same tensors are asked about once. */
  readonly #placesOfInputs: InputPlace[] = [];
  /** Of inputs, and of storage that the trace holds. In a run also of outputs. */
  readonly #places = new Map<Memory, StoragePlace>();
  /** Inputs first, as `#open` has them. The same list as long as no input has moved. */
  #openInputs: readonly Place[] = [];
  #isMovedSinceAsked = true;
  /** Those that came in the memory of the traced run each time. */
  readonly #unmoved: Set<Input>;
  /** Memory of results and gradients, new in each run. */
  readonly outputs: readonly Memory[];
  readonly #open: readonly Memory[];
  /** Null until a run needs them. */
  #parts: readonly Part[] | null = null;
  readonly #writtenStorages: ReadonlyMap<Memory, Overwritable>;
  /** What the function found and keeps, and its temporaries. */
  readonly memory = new TraceMemory();
  #runs = 0;
  #isDisposed = false;

  /**
   * @param own the tensors that the function made; others among its results come back as they are
   * @param limit most bytes of temporaries, as the option `memory` has it
   * @throws OptError BAD_ARGUMENT if they cannot fit
   */
  constructor(
    readonly tracing: Tracing,
    result: unknown,
    own: ReadonlySet<unknown>,
    usePasses: boolean,
    limit?: number | string,
  ) {
    const { made, freed, inputs, written, storages } = tracing;
    this.#device = tracing.device;
    this.#inputs = [...inputs.values()].flat();
    this.#unmoved = new Set(this.#inputs);
    this.#finalGradients = tracing.takeGradients();
    const outputs = new Set<Memory>();
    const escapes = (view: View) => made.has(view.memory) && outputs.add(view.memory);
    const leaves = new Set<Tensor>();
    const escapeAll = (finalGradients: ReadonlyMap<Tensor, FinalGradient>) => {
      for (const [leaf, grad] of finalGradients) {
        if (grad !== null) leaves.add(leaf);
        if (grad !== null && !(grad instanceof Tensor)) escapes(grad);
      }
    };
    this.#result = mapTensors(result, (tensor) => {
      const view = viewOf(tensor);
      const isOfRun = made.has(view.memory) || inputs.has(view.memory);
      if (!isOfRun && !own.has(tensor)) return tensor;
      if (!isOfRun) storages.set(view.memory, tensor.storage); // a view of what was there before
      escapes(view);
      return new Placeholder(view);
    });
    escapeAll(this.#finalGradients);
    for (const step of tracing.steps) if (step.kind === "host") escapeAll(step.gradients);
    this.#leaves = [...leaves];
    this.outputs = [...outputs];
    this.#open = [...inputs.keys(), ...outputs];
    const temporaries = new Set([...made.keys()].filter((memory) => freed.has(memory) && !outputs.has(memory)));
    const steps = withoutConstants(tracing.steps, temporaries);
    const passes = usePasses && !tracing.hasAliases && this.#device !== null ? LATER.code : undefined;
    this.#optimized = passes?.optimized(steps, temporaries, this.#device!, limit) ?? {
      steps,
      ...plan(steps, temporaries, false),
    };
    const { arenaBytes, offsets } = this.#optimized;
    LATER.code?.checkFit(arenaBytes, limit);
    const isOpen = new Set(this.#open);
    const isHeld = (memory: Memory) => !isOpen.has(memory) && !temporaries.has(memory) && !offsets.has(memory);
    const used = this.#optimized.steps.flatMap((step) => [...usedBy(step)]);
    const { memory } = this;
    const device = this.#device;
    memory.device = device;
    for (const one of used.filter(isHeld)) {
      if (!memory.pinned.has(one)) device!.pool.pin(one);
      memory.pinned.add(one);
    }
    for (const [one, storage] of storages) if (isHeld(one)) memory.storages.push(storage.retain());
    this.#writtenStorages = new Map([...written].map((storage) => [storage.memory, storage]));
    for (const storage of memory.storages) this.#places.set(storage.memory, { storage, byteOffset: 0 });
  }

  /** Makes the block of temporaries and prepares launches. @throws OptError OUT_OF_MEMORY; then neither is held */
  #prepare(): readonly Part[] {
    const { memory } = this;
    const device = this.#device!;
    const { arenaBytes, offsets, steps } = this.#optimized;
    try {
      const arena = offsets.size > 0 ? Storage.allocate(device, arenaBytes) : null;
      memory.arena = arena;
      if (arena) this.#places.set(arena.memory, { storage: arena, byteOffset: 0 });
      const inArena = <S extends Slice>(slice: S): S => {
        const at = offsets.get(slice.memory);
        return at === undefined ? slice : { ...slice, memory: arena!.memory, byteOffset: at + slice.byteOffset };
      };
      const placed = steps.map((step) => withPlaces(step, inArena));
      const inputs = new Set(this.#inputs.map(({ memory }) => memory));
      return partsOf(placed, segmentStarts(steps), (launches, writes) => {
        const list = prepared(device.backend, device, launches, this.#open);
        memory.prepared.push(list);
        const found = [...writes].filter((one) => this.#writtenStorages.has(one));
        const overwritten = found.filter((one) => !inputs.has(one)).map((one) => this.#writtenStorages.get(one)!);
        return { prepared: list, overwritten, overwrittenInputs: found.filter((one) => inputs.has(one)) };
      });
    } catch (error) {
      this.giveWay();
      throw error;
    }
  }

  /** Gives back what only runs need. The next run makes it again. */
  giveWay(): void {
    if (this.memory.arena) this.#places.delete(this.memory.arena.memory);
    this.memory.giveWay();
    this.#parts = null;
  }

  explain(): Explanation {
    const { steps, peakBytes } = this.tracing;
    return explain(this.#optimized, { launches: steps.filter(({ kind }) => kind === "launch").length, peakBytes });
  }

  /** A hook of a run calls the function again. */
  get isRunning(): boolean {
    return this.#runs > 0;
  }

  /** True if a run would do what the function would: what it depends on is as it was. */
  fits(tensors: readonly Tensor[]): boolean {
    if (this.#device?.pool.isClosed || !this.tracing.canBegin()) return false;
    if (this.#leaves.some(({ isDisposed }) => isDisposed)) return false; // then the function throws
    return this.#areWhereTheyWere(tensors) || this.#place(tensors);
  }

  #areWhereTheyWere(tensors: readonly Tensor[]): boolean {
    const places = this.#placesOfInputs;
    if (places.length < this.#inputs.length) return false;
    for (let i = 0; i < places.length; i++) {
      const { of, gradient, storage, memory, start } = places[i]!;
      if (typeof of === "number") {
        const tensor = tensors[of]!;
        if (tensor.storage !== storage || tensor.byteOffset !== start) return false;
      } else if (gradient === null || gradient.isDisposed || of.grad !== gradient) return false;
      if (storage.memory !== memory) return false;
    }
    return true;
  }

  /** Notes where inputs are. False if a run would not do what the function does. */
  #place(tensors: readonly Tensor[]): boolean {
    const places = this.#placesOfInputs;
    places.length = 0;
    const found = new Map<Memory, StoragePlace & { readonly memory: Memory }>();
    const present: InputPlace[] = [];
    for (const input of this.#inputs) {
      const tensor = tensorOf(input, tensors);
      if (tensor === null) return false;
      tensor.checkAlive();
      const { storage } = tensor;
      const { memory } = storage;
      const byteOffset = tensor.byteOffset - input.byteOffset;
      const gradient = typeof input.of === "number" ? null : tensor;
      present.push({ of: input.of, gradient, storage, memory, start: tensor.byteOffset });
      const first = found.get(input.memory);
      if (first === undefined) found.set(input.memory, { storage, byteOffset, memory });
      else if (first.storage !== storage || first.byteOffset !== byteOffset) return false;
    }
    // What the trace found outside, or as two inputs, must not come as one: passes took the two for different memory.
    const memories = new Set([...found.values()].map(({ memory }) => memory));
    if (memories.size < found.size || [...memories].some((memory) => this.memory.pinned.has(memory))) return false;
    for (const place of present) places.push(place);
    for (const [memory, place] of found) this.#places.set(memory, place);
    this.#openInputs = [...found.values()].map(({ memory, byteOffset }) => ({ memory, byteOffset }));
    this.#isMovedSinceAsked = true;
    return true;
  }

  /** True where an input comes in other memory for the first time: the function may have found its memory from outside, too. */
  takeMoved(): boolean {
    if (!this.#isMovedSinceAsked) return false;
    this.#isMovedSinceAsked = false;
    let isMoved = false;
    for (const input of this.#unmoved) {
      const { storage, byteOffset } = this.#places.get(input.memory)!;
      if (storage.memory === input.memory && byteOffset === 0) continue;
      this.#unmoved.delete(input);
      isMoved = true;
    }
    return isMoved;
  }

  /**
   * Does what the function would do, with the tensors that fit.
   *
   * @param filled a run of the function that waits: only its launches are done
   */
  run(filled?: Filled): unknown {
    this.#runs++;
    const places = this.#places;
    const made: Storage[] = [];
    try {
      if (!filled) for (const { view, body } of this.tracing.checks) withTensors([view], places, body);
      const outputs = this.outputs.map((memory, i): Place => {
        const storage = filled
          ? new Storage(this.#device!, filled.outputs[i]!)
          : Storage.allocate(this.#device!, memory.bytes);
        if (!filled) made.push(storage);
        const place = { storage, byteOffset: 0 };
        places.set(memory, place);
        return { memory: storage.memory, byteOffset: 0 };
      });
      this.#parts ??= this.#prepare();
      const inputs = filled?.inputs ?? this.#openInputs;
      const open = outputs.length === 0 ? inputs : [...inputs, ...outputs];
      for (const part of this.#parts) {
        if (part.kind === "launches") {
          runSegment(part, this.#device!.backend, open, places, filled?.numbers);
          if (filled) continue;
          for (const storage of part.overwritten) storage.overwritten();
          for (const memory of part.overwrittenInputs) places.get(memory)!.storage.overwritten();
        } else {
          leave(part.gradients, places);
          withTensors(part.views, places, part.run);
        }
      }
      if (filled) return undefined;
      leave(this.#finalGradients, places);
      for (const end of this.tracing.ends) end();
      return mapTree(this.#result, isPlaceholder, ({ view }) => tensorAt(view, places));
    } finally {
      for (const storage of made) storage.release();
      this.#runs--;
      if (this.#isDisposed && this.#runs === 0) this.memory.release(); // by a hook
    }
  }

  dispose(): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    if (this.#runs === 0) this.memory.release();
  }
}

function withPlaces(step: Step, place: <S extends Slice>(slice: S) => S): Step {
  if (step.kind === "launch") return { ...step, launch: withSlices(step.launch, place) };
  if (step.kind === "write") return { ...step, slice: place(step.slice) };
  return { ...step, views: step.views.map(place) };
}

/**
 * The steps without constants that nothing overwrites: the trace holds their memory, which is no temporary any more, as the first call
 * has filled it.
 */
function withoutConstants(steps: readonly Step[], temporaries: Set<Memory>): readonly Step[] {
  const writers = new Map<Memory, number>();
  const count = (memory: Memory) => writers.set(memory, (writers.get(memory) ?? 0) + 1);
  for (const step of steps) {
    if (step.kind === "launch") for (const memory of writesOf(step.launch)) count(memory);
    else if (step.kind === "write") count(step.slice.memory);
    else for (const { memory } of step.views) count(memory);
  }
  return steps.filter((step) => {
    if (step.kind !== "write" || !step.isConstant) return true;
    const { memory } = step.slice;
    return writers.get(memory)! > 1 || !temporaries.delete(memory);
  });
}

/** Where host data goes to memory that a launch before it uses: it must not be written first. */
function segmentStarts(steps: readonly Step[]): ReadonlySet<number> {
  const starts = new Set<number>();
  let used = new Set<Memory>();
  steps.forEach((step, i) => {
    if (step.kind === "host") used = new Set();
    else if (step.kind === "launch") for (const memory of memoriesOf(step.launch)) used.add(memory);
    else if (used.has(step.slice.memory)) {
      starts.add(i);
      used = new Set();
    }
  });
  return starts;
}

/** Host code stands alone, and so do launches over rows: the host looks at the list of rows first. */
function partsOf(
  steps: readonly Step[],
  starts: ReadonlySet<number>,
  prepare: (
    launches: readonly Launch[],
    writes: ReadonlySet<Memory>,
  ) => Pick<Segment, "prepared" | "overwritten" | "overwrittenInputs">,
): Part[] {
  const parts: Part[] = [];
  let segment: Step[] = [];
  const end = () => {
    const launches = segment.filter((step) => step.kind === "launch");
    const hostData = segment.filter((step) => step.kind === "write");
    const scalarSources = new Map(
      launches.flatMap(({ scalarSource }, i) => (scalarSource === undefined ? [] : [[i, scalarSource] as const])),
    );
    const list = launches.map(({ launch }) => launch);
    if (segment.length > 0) {
      const writes = new Set(list.flatMap((launch) => [...writesOf(launch)]));
      for (const { slice } of hostData) writes.add(slice.memory);
      parts.push({ kind: "launches", hostData, scalarSources, launches: list, ...prepare(list, writes) });
    }
    segment = [];
  };
  for (const [i, step] of steps.entries()) {
    const isOfRows = step.kind === "launch" && step.launch.kind === "rule" && step.launch.rows !== undefined;
    if (isOfRows || step.kind === "host" || starts.has(i)) end();
    if (step.kind === "host") parts.push(step);
    else segment.push(step);
    if (isOfRows) end();
  }
  end();
  return parts;
}

function runSegment(
  { hostData, scalarSources, launches, prepared }: Segment,
  backend: Backend,
  open: readonly Place[],
  places: Places,
  numbers?: Filled["numbers"],
): void {
  const scalars = new Map<number, readonly Scalar[]>();
  for (const [index, scalarSource] of scalarSources) {
    // Scalars on the device stay where the trace has them.
    const { scalars: traced } = launches[index] as Launch<"rule">;
    const renewed = (numbers?.get(scalarSource) as readonly Scalar[] | undefined) ?? scalarSource.next();
    scalars.set(
      index,
      renewed.map((scalar, i) => (typeof scalar === "number" ? scalar : traced[i]!)),
    );
    if (numbers === undefined) scalarSource.commit();
  }
  for (const { slice, bytes } of hostData) {
    const place = places.get(slice.memory);
    const memory = place?.storage.memory ?? slice.memory;
    const given = (numbers?.get(bytes) as Uint8Array | undefined) ?? bytes();
    backend.write(memory, slice.byteOffset + (place?.byteOffset ?? 0), given);
  }
  prepared.run(scalars, open);
}

/** Tensors of this run where host code finds the traced ones. */
function withTensors(views: readonly View[], places: Places, body: (...tensors: Tensor[]) => void): void {
  const tensors = views.map((view) => tensorAt(view, places));
  try {
    body(...tensors);
  } finally {
    for (const tensor of tensors) tensor.dispose();
  }
}

function tensorAt({ memory, byteOffset, shape, dtype }: View, places: Places): Tensor {
  const place = places.get(memory)!;
  return new Tensor(place.storage.retain(), byteOffset + place.byteOffset, shape, dtype);
}

/** What an input is in this call; null for a gradient that is not there. */
function tensorOf({ of }: Input, tensors: readonly Tensor[]): Tensor | null {
  return typeof of === "number" ? tensors[of]! : of.grad;
}

function leave(gradients: ReadonlyMap<Tensor, FinalGradient>, places: Places): void {
  for (const [leaf, grad] of gradients) {
    if (grad === null) leaf.clearGradient();
    else if (grad instanceof Tensor) leaf.grad = grad;
    else {
      leaf.clearGradient();
      leaf.receiveGradient(tensorAt(grad, places));
    }
  }
}

/** Launches that run as one, on other open memory each time. */
function prepared(
  backend: Backend,
  device: Device,
  launches: readonly Launch[],
  open: readonly Memory[],
): PreparedLaunches {
  const isOfRows = launches.some((launch) => launch.kind === "rule" && launch.rows !== undefined);
  if (backend.prepare === undefined || isOfRows) return oneByOne(device, launches, open);
  const inOneGo = backend.prepare(launches, open);
  return {
    run: (scalars, places) =>
      (watching.watcher === null ? inOneGo : oneByOne(device, launches, open)).run(scalars, places),
    dispose: () => inOneGo.dispose(),
  };
}

function oneByOne(device: Device, launches: readonly Launch[], open: readonly Memory[]): PreparedLaunches {
  const isOpen = new Set(open);
  const moving = launches.map((launch) => [...memoriesOf(launch)].some((memory) => isOpen.has(memory)));
  let present = launches;
  let last: readonly Place[] | undefined;
  return {
    run(scalars, places) {
      if (places !== last) {
        const now = new Map(open.map((memory, i) => [memory, places[i]!]));
        present = launches.map((launch, i) => (moving[i] ? movedLaunch(launch, now) : launch));
        last = places;
      }
      present.forEach((launch, i) => {
        const renewed = scalars.get(i);
        device.launch(renewed === undefined ? launch : withScalars(launch as Launch<"rule">, renewed));
      });
    },
    dispose() {},
  };
}

/** Numbers are renewed; scalars on the device are where the launch has them now. */
function withScalars(launch: Launch<"rule">, renewed: readonly Scalar[]): Launch {
  return { ...launch, scalars: renewed.map((scalar, i) => (typeof scalar === "number" ? scalar : launch.scalars[i]!)) };
}
