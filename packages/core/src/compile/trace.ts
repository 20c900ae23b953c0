/** A trace, ready to run: the launches of a function without the tensors, tape and checks that led to them. */
import type { Backend, Place, PreparedLaunches } from "../backend/backend";
import { memoriesOf, movedLaunch, withSlices, writesOf } from "../backend/launches";
import type { Memory, Scalar, Slice } from "../backend/memory";
import type { Launch } from "../backend/spec";
import type { Device } from "../device/device";
import { loadedLater } from "../device/loaded-later";
import type { ScalarSource } from "../device/scalar-source";
import type { Overwritable } from "../device/tracer";
import { watching } from "../device/watcher";
import { Storage } from "../tensor/storage";
import { Tensor } from "../tensor/tensor";
import { type Explanation, explain } from "./explain";
import { plan } from "./passes/memory-plan";
import type { OptimizedTrace } from "./passes/passes";
import type { FinalGradient, Step, View } from "./steps";
import { type Input, type Tracing, viewOf } from "./tracing";
import { mapTensors, mapTree } from "./tree";

const PASSES = /* @__PURE__ */ loadedLater(() => import("./passes/passes"));

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
  readonly writes: ReadonlySet<Memory>;
}

type Part = Segment | Extract<Step, { kind: "host" }>;

/** Memory of the trace in one run. */
type Places = ReadonlyMap<Memory, { readonly storage: Storage; readonly byteOffset: number }>;

/** What a trace holds. It does not refer to the function, which may refer to it. */
export class TraceMemory {
  device: Device | null = null;
  readonly pinned = new Set<Memory>();
  readonly storages: Storage[] = [];
  readonly prepared: PreparedLaunches[] = [];

  release(): void {
    const { pool } = this.device ?? {};
    if (pool === undefined) return;
    if (!pool.isClosed) for (const launches of this.prepared.splice(0)) launches.dispose();
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
  readonly #inputs: readonly (readonly Input[])[];
  /** Those that came in the memory of the traced run each time. */
  readonly #unmoved: Set<Input>;
  /** Memory of results and gradients, new in each run. */
  readonly #outputs: readonly Memory[];
  readonly #open: readonly Memory[];
  readonly #parts: readonly Part[];
  /** What the function found and keeps, and its temporaries. */
  readonly memory = new TraceMemory();
  readonly #written: ReadonlyMap<Memory, Overwritable>;
  #runs = 0;
  #isDisposed = false;

  /**
   * @param own the tensors that the function made; others among its results come back as they are
   * @throws OptError OUT_OF_MEMORY; then nothing is held
   */
  constructor(
    readonly tracing: Tracing,
    result: unknown,
    own: ReadonlySet<unknown>,
    usePasses: boolean,
  ) {
    const { made, freed, inputs, written, storages } = tracing;
    this.#device = tracing.device;
    this.#inputs = [...inputs.values()];
    this.#unmoved = new Set(this.#inputs.flat());
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
    this.#outputs = [...outputs];
    this.#open = [...inputs.keys(), ...outputs];
    const temporaries = new Set([...made.keys()].filter((memory) => freed.has(memory) && !outputs.has(memory)));
    const steps = withoutConstants(tracing.steps, temporaries);
    const backend = this.#device?.backend;
    const passes = usePasses && this.#device !== null ? PASSES.code : undefined;
    this.#optimized = passes?.optimized(steps, temporaries, this.#device!) ?? {
      steps,
      ...plan(steps, temporaries, false),
    };
    const isOpen = new Set(this.#open);
    const isHeld = (memory: Memory) => !isOpen.has(memory) && !temporaries.has(memory);
    const used = this.#optimized.steps.flatMap(memoriesUsedBy);
    const { device, memory } = { device: this.#device, memory: this.memory };
    memory.device = device;
    for (const one of used.filter(isHeld)) {
      if (!memory.pinned.has(one)) device!.pool.pin(one);
      memory.pinned.add(one);
    }
    for (const [one, storage] of storages) if (isHeld(one)) memory.storages.push(storage.retain());
    this.#written = new Map([...written].map((storage) => [storage.memory, storage]));
    tracing.release(temporaries);
    try {
      const { arenaBytes, offsets } = this.#optimized;
      const arena = offsets.size > 0 ? Storage.allocate(device!, arenaBytes) : null;
      if (arena) memory.storages.push(arena);
      tracing.release(); // not earlier: the arena must be other memory than what is open
      const inArena = <S extends Slice>(slice: S): S => {
        const at = offsets.get(slice.memory);
        return at === undefined ? slice : { ...slice, memory: arena!.memory, byteOffset: at + slice.byteOffset };
      };
      const placed = this.#optimized.steps.map((step) => withPlaces(step, inArena));
      this.#parts = partsOf(placed, segmentStarts(this.#optimized.steps), (launches) => {
        const list = prepared(backend!, device!, launches, this.#open);
        memory.prepared.push(list);
        return list;
      });
    } catch (error) {
      memory.release();
      throw error;
    }
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
    const seen = new Set<Memory>();
    return this.#inputs.every((list) => {
      const places = list.map((input) => placeOf(input, tensors));
      const { memory } = places[0]!.storage;
      // What the trace found outside, or as two inputs, must not come as one: passes took the two for different memory.
      if (this.memory.pinned.has(memory) || seen.has(memory)) return false;
      seen.add(memory);
      return places.every(
        (place) => place.storage === places[0]!.storage && place.byteOffset === places[0]!.byteOffset,
      );
    });
  }

  /** True where an input comes in other memory for the first time: the function may have found its memory from outside, too. */
  takeMoved(tensors: readonly Tensor[]): boolean {
    let isMoved = false;
    for (const input of this.#unmoved) {
      const { storage, byteOffset } = placeOf(input, tensors);
      if (storage.memory === input.memory && byteOffset === 0) continue;
      this.#unmoved.delete(input);
      isMoved = true;
    }
    return isMoved;
  }

  /** Does what the function would do. */
  run(tensors: readonly Tensor[]): unknown {
    this.#runs++;
    const places = new Map<Memory, { storage: Storage; byteOffset: number }>();
    const made: Storage[] = [];
    try {
      for (const storage of this.memory.storages) places.set(storage.memory, { storage, byteOffset: 0 });
      for (const [input] of this.#inputs) places.set(input!.memory, placeOf(input!, tensors));
      for (const { view, body } of this.tracing.checks) withTensors([view], places, body);
      for (const memory of this.#outputs) {
        const storage = Storage.allocate(this.#device!, memory.bytes);
        made.push(storage);
        places.set(memory, { storage, byteOffset: 0 });
      }
      const open = this.#open.map((memory): Place => {
        const { storage, byteOffset } = places.get(memory)!;
        return { memory: storage.memory, byteOffset };
      });
      for (const part of this.#parts) {
        if (part.kind === "launches") {
          runSegment(part, this.#device!.backend, open, places);
          for (const memory of part.writes)
            (this.#written.has(memory)
              ? (places.get(memory)?.storage ?? this.#written.get(memory))
              : null
            )?.overwritten();
        } else {
          leave(part.gradients, places);
          withTensors(part.views, places, part.run);
        }
      }
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

function memoriesUsedBy(step: Step): Memory[] {
  if (step.kind === "launch") return [...memoriesOf(step.launch)];
  return step.kind === "write" ? [step.slice.memory] : [];
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
  prepare: (launches: readonly Launch[]) => PreparedLaunches,
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
      parts.push({ kind: "launches", hostData, scalarSources, launches: list, prepared: prepare(list), writes });
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
): void {
  const scalars = new Map<number, readonly Scalar[]>();
  for (const [index, scalarSource] of scalarSources) {
    // Scalars on the device stay where the trace has them.
    const { scalars: traced } = launches[index] as Launch<"rule">;
    scalars.set(
      index,
      scalarSource.next().map((scalar, i) => (typeof scalar === "number" ? scalar : traced[i]!)),
    );
    scalarSource.commit();
  }
  for (const { slice, bytes } of hostData) {
    const place = places.get(slice.memory);
    const memory = place?.storage.memory ?? slice.memory;
    backend.write(memory, slice.byteOffset + (place?.byteOffset ?? 0), bytes());
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

function placeOf({ byteOffset, of }: Input, tensors: readonly Tensor[]): { storage: Storage; byteOffset: number } {
  const tensor = typeof of === "number" ? tensors[of]! : of.grad!;
  return { storage: tensor.storage, byteOffset: tensor.memorySlice().byteOffset - byteOffset };
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
  return {
    run(scalars, places) {
      const now = new Map(open.map((memory, i) => [memory, places[i]!]));
      launches.forEach((launch, i) => {
        const renewed = scalars.get(i);
        const present = renewed === undefined ? launch : ({ ...launch, scalars: renewed } as Launch);
        device.launch(moving[i] ? movedLaunch(present, now) : present);
      });
    },
    dispose() {},
  };
}
