/** A trace, ready to run: the launches of a function without the tensors, tape and checks that led to them. */
import type { Backend, Place, PreparedLaunches } from "../backend/backend";
import { memoriesOf, movedLaunch, withSlices } from "../backend/launches";
import type { Memory, Scalar, Slice } from "../backend/memory";
import type { Launch } from "../backend/spec";
import type { Device } from "../device/device";
import type { Live, Overwritable } from "../device/tracer";
import { Storage } from "../tensor/storage";
import { Tensor } from "../tensor/tensor";
import { type Optimized, optimized } from "./passes/passes";
import { type Input, type Left, type Step, type Tracing, type View, viewOf } from "./tracing";
import { mapTensors, mapTree } from "./tree";

/** A tensor in the result of the function: a view, or a tensor that was there before. */
class Placeholder {
  constructor(readonly view: View) {}
}

const isPlaceholder = (value: unknown): value is Placeholder => value instanceof Placeholder;

/** What runs in one go: random numbers first, then launches. */
interface Segment {
  readonly kind: "launches";
  readonly draws: readonly Extract<Step, { kind: "draw" }>[];
  readonly lives: ReadonlyMap<number, Live>;
  readonly launches: readonly Launch[];
  readonly prepared: PreparedLaunches;
}

type Part = Segment | Extract<Step, { kind: "host" }>;

/** Memory of the trace in one run. */
type Places = ReadonlyMap<Memory, { readonly storage: Storage; readonly byteOffset: number }>;

export class Trace {
  readonly summary: Optimized;
  readonly #device: Device | null;
  readonly #result: unknown;
  readonly #left: ReadonlyMap<Tensor, Left>;
  readonly #inputs: readonly (readonly Input[])[];
  /** Those that came in the memory of the traced run each time. */
  readonly #unmoved: Set<Input>;
  /** Memory of results and gradients, new in each run. */
  readonly #outputs: readonly Memory[];
  readonly #open: readonly Memory[];
  #parts: readonly Part[] = [];
  /** Held as long as the trace: what the function found, and what it keeps. */
  readonly #pinned: ReadonlySet<Memory>;
  readonly #held: readonly Storage[];
  #arena: Storage | null = null;
  readonly #written: readonly Overwritable[];
  readonly #writtenInputs: readonly Memory[];
  #runs = 0;
  #isDisposed = false;

  /** @throws OptError OUT_OF_MEMORY; then nothing is held */
  constructor(
    readonly tracing: Tracing,
    result: unknown,
    usePasses: boolean,
  ) {
    const { made, freed, inputs, steps, written, storages } = tracing;
    this.#device = tracing.device;
    this.#inputs = [...inputs.values()];
    this.#unmoved = new Set(this.#inputs.flat());
    this.#left = tracing.takeGradients();
    const outputs = new Set<Memory>();
    const escapes = (view: View) => made.has(view.memory) && outputs.add(view.memory);
    const escapeAll = (left: ReadonlyMap<Tensor, Left>) => {
      for (const grad of left.values()) if (grad !== null && !(grad instanceof Tensor)) escapes(grad);
    };
    this.#result = mapTensors(result, (tensor) => {
      const view = viewOf(tensor);
      if (!made.has(view.memory) && !inputs.has(view.memory)) return tensor;
      escapes(view);
      return new Placeholder(view);
    });
    escapeAll(this.#left);
    for (const step of steps) if (step.kind === "host") escapeAll(step.gradients);
    this.#outputs = [...outputs];
    this.#open = [...inputs.keys(), ...outputs];
    const temporaries = new Set([...made.keys()].filter((memory) => freed.has(memory) && !outputs.has(memory)));
    const backend = this.#device?.backend;
    this.summary = optimized(steps, temporaries, { usePasses, device: this.#device });
    const isOpen = new Set(this.#open);
    const isHeld = (memory: Memory) => !isOpen.has(memory) && !temporaries.has(memory);
    const used = this.summary.steps.flatMap(memoriesUsedBy);
    this.#pinned = new Set(used.filter(isHeld));
    for (const memory of this.#pinned) this.#device!.pool.pin(memory);
    this.#held = [...storages].flatMap(([memory, storage]) => (isHeld(memory) ? [storage.retain()] : []));
    this.#written = [...written].filter(({ memory }) => !inputs.has(memory));
    this.#writtenInputs = [...written].map(({ memory }) => memory).filter((memory) => inputs.has(memory));
    tracing.release();
    try {
      const { arenaBytes, offsets } = this.summary;
      this.#arena = offsets.size > 0 ? Storage.allocate(this.#device!, arenaBytes) : null;
      const inArena = <S extends Slice>(slice: S): S => {
        const at = offsets.get(slice.memory);
        return at === undefined ? slice : { ...slice, memory: this.#arena!.memory, byteOffset: at + slice.byteOffset };
      };
      const placed = this.summary.steps.map((step) => withPlaces(step, inArena));
      this.#parts = partsOf(placed, (launches) => prepared(backend!, this.#device!, launches, this.#open));
    } catch (error) {
      this.#release();
      throw error;
    }
  }

  /** True if a run would do what the function would: what it depends on is as it was. */
  fits(tensors: readonly Tensor[]): boolean {
    if (this.#device?.pool.isClosed || !this.tracing.holds()) return false;
    return this.#inputs.every((list) => {
      const places = list.map((input) => placeOf(input, tensors));
      // What the trace found outside must not come as an argument: passes took the two for different memory.
      if (this.#pinned.has(places[0]!.storage.memory)) return false;
      return places.every(
        (place) => place.storage === places[0]!.storage && place.byteOffset === places[0]!.byteOffset,
      );
    });
  }

  /** True where an input comes in other memory for the first time: the function may have found its memory from outside, too. */
  takeMoved(tensors: readonly Tensor[]): boolean {
    let isMoved = false;
    for (const input of this.#unmoved) {
      if (placeOf(input, tensors).storage.memory === input.memory) continue;
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
      for (const storage of this.#held) places.set(storage.memory, { storage, byteOffset: 0 });
      if (this.#arena) places.set(this.#arena.memory, { storage: this.#arena, byteOffset: 0 });
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
        if (part.kind === "launches") runSegment(part, this.#device!.backend, open);
        else {
          leave(part.gradients, places);
          withTensors(part.views, places, part.run);
        }
      }
      for (const storage of this.#written) storage.overwritten();
      for (const memory of this.#writtenInputs) places.get(memory)!.storage.overwritten();
      for (const end of this.tracing.ends) end();
      leave(this.#left, places);
      return mapTree(this.#result, isPlaceholder, ({ view }) => tensorAt(view, places));
    } finally {
      for (const storage of made) storage.release();
      this.#runs--;
      if (this.#isDisposed) this.#release(); // by a hook
    }
  }

  dispose(): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    if (this.#runs === 0) this.#release();
  }

  #release(): void {
    const { pool } = this.#device ?? {};
    if (pool === undefined) return;
    if (!pool.isClosed) for (const part of this.#parts) if (part.kind === "launches") part.prepared.dispose();
    for (const memory of this.#pinned) pool.unpin(memory);
    for (const storage of this.#held) storage.release();
    this.#arena?.release();
  }
}

function memoriesUsedBy(step: Step): Memory[] {
  if (step.kind === "launch") return [...memoriesOf(step.launch)];
  return step.kind === "draw" ? [step.slice.memory] : [];
}

function withPlaces(step: Step, place: <S extends Slice>(slice: S) => S): Step {
  if (step.kind === "launch") return { ...step, launch: withSlices(step.launch, place) };
  if (step.kind === "draw") return { ...step, slice: place(step.slice) };
  return { ...step, views: step.views.map(place) };
}

/** Host code stands alone, and so do launches over rows: the host looks at the list of rows first. */
function partsOf(steps: readonly Step[], prepare: (launches: readonly Launch[]) => PreparedLaunches): Part[] {
  const parts: Part[] = [];
  let segment: Step[] = [];
  const end = () => {
    const launches = segment.filter((step) => step.kind === "launch");
    const draws = segment.filter((step) => step.kind === "draw");
    const lives = new Map(launches.flatMap(({ live }, i) => (live === undefined ? [] : [[i, live] as const])));
    const list = launches.map(({ launch }) => launch);
    if (segment.length > 0) parts.push({ kind: "launches", draws, lives, launches: list, prepared: prepare(list) });
    segment = [];
  };
  for (const step of steps) {
    const isOfRows = step.kind === "launch" && step.launch.kind === "rule" && step.launch.rows !== undefined;
    if (isOfRows || step.kind === "host") end();
    if (step.kind === "host") parts.push(step);
    else segment.push(step);
    if (isOfRows) end();
  }
  end();
  return parts;
}

function runSegment({ draws, lives, launches, prepared }: Segment, backend: Backend, open: readonly Place[]): void {
  const scalars = new Map<number, readonly Scalar[]>();
  for (const [index, live] of lives) {
    // Scalars on the device stay where the trace has them.
    const { scalars: traced } = launches[index] as Launch<"rule">;
    scalars.set(
      index,
      live.next().map((scalar, i) => (typeof scalar === "number" ? scalar : traced[i]!)),
    );
    live.commit();
  }
  for (const { slice, bytes } of draws) backend.write(slice.memory, slice.byteOffset, bytes());
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

function leave(gradients: ReadonlyMap<Tensor, Left>, places: Places): void {
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
  return backend.prepare(launches, open);
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
