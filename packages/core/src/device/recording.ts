/** A step recorded once and replayed: the launches without the tensors, tape and checks that led to them. */
import type { Backend, RecordedLaunches } from "../backend/backend";
import { type Memory, type Scalar, slicesOf } from "../backend/memory";
import type { Launch } from "../backend/spec";
import { check } from "../errors/errors";
import { inspectSymbol } from "../host/inspect-symbol";
import type { DeviceMemory } from "./device-memory";
import { type Leaf, type Left, type Recorder, Segment, type Used } from "./recorder";
import { checkRepeatable } from "./repeatable";
import type { Scoped } from "./scope";
import { changes, countOverwrites, returnedNumbers, versionNumbers } from "./versions";

/** A recorded step, made by `device.record`: `replay()` does what running it again would, bit for bit. */
export class Recording<Result> {
  /** What the body returned. Its tensors have new contents after each replay; those that were made inside live as long as the recording. */
  readonly result: Result;
  readonly #parts: readonly { run(): void; dispose(): void }[];
  /** All memory that launches and hooks use. */
  readonly #memories: ReadonlySet<Memory>;
  /** What was there before the body, and must be there still. */
  readonly #needed: readonly {
    readonly leaf: Used;
    readonly requiresGrad: boolean;
    readonly replaced: number | undefined;
  }[];
  readonly #leaves: readonly (Left & { readonly leaf: Leaf })[];
  #disposed = false;
  /** That run now: hooks of a replay may do anything. */
  #replays = 0;
  /** All `changes` when the tensors were looked at last. */
  #seen = -1;

  /** @internal Use `device.record`. @throws what the backend's `record` throws; then nothing is held */
  constructor(
    backend: Backend,
    private readonly pool: DeviceMemory,
    private readonly recorder: Recorder,
    result: Result,
    private readonly kept: readonly Scoped[],
  ) {
    this.result = result;
    const segments = recorder.parts.filter((part) => part instanceof Segment);
    const slices = segments.flatMap(({ launches }) => launches.flatMap((launch) => [...slicesOf(launch)]));
    const draws = segments.flatMap((segment) => segment.draws);
    this.#memories = new Set([...[...slices, ...draws].map(({ memory }) => memory), ...recorder.held]);
    const needed = [...recorder.used].filter((one) => !one.isDisposed && !recorder.made.has(one.storage.memory));
    for (const one of needed) one.isWatched = true;
    this.#needed = needed.map((leaf) => ({ leaf, requiresGrad: leaf.requiresGrad, replaced: leaf.replaced }));
    this.#leaves = Array.from(recorder.leaves, ([leaf, left]) => ({ leaf, ...left }));
    const parts: { run(): void; dispose(): void }[] = [];
    try {
      for (const part of recorder.parts) {
        if (!(part instanceof Segment)) parts.push({ run: part, dispose() {} });
        else if (part.launches.length > 0 || part.draws.length > 0)
          parts.push(new RecordedSegment(backend, part, parts.length > 0));
      }
    } catch (error) {
      for (const part of parts) part.dispose();
      throw error;
    }
    this.#parts = parts;
    for (const memory of this.#memories) pool.pin(memory);
    for (const memory of recorder.freed) pool.free(memory); // the pinned ones stay until dispose
  }

  /**
   * Does again what the body did, on the same memory: put new data into the same tensors with `set` before.
   * Optimizers inside count a step and use their groups' present options (a schedule goes on), their hooks run,
   * and random numbers are drawn anew: bit for bit what running the body again would give.
   *
   * @throws OptError DISPOSED after dispose; UNSUPPORTED inside of another recording; BAD_STATE if what the step works on was
   * replaced, disposed or set so that the body would now do something else: gradients, optimizer state, groups, options;
   * BAD_ARGUMENT if options are out of range. Nothing has changed then.
   */
  replay(): void {
    check(!this.#disposed, "DISPOSED", "replay", () => "the recording was disposed.", "Record the step again.");
    checkRepeatable("replay", "a replay");
    this.#verify();
    this.#replays++;
    try {
      for (const part of this.#parts) part.run();
    } finally {
      this.#replays--;
      if (this.#disposed) this.#release(); // by a hook
    }
  }

  /** @throws OptError BAD_STATE if the body would now do something else */
  #verify(): void {
    check(
      !this.pool.isClosed,
      "DISPOSED",
      "replay",
      () => "the device of the recorded step was closed.",
      "Record the step again on another.",
    );
    const seen = changes.disposed + changes.leaves;
    if (this.#seen !== seen) this.#verifyTensors();
    this.#seen = seen;
    for (const part of this.recorder.parts) if (part instanceof Segment) part.check();
  }

  #verifyTensors(): void {
    check(
      !this.#needed.some(({ leaf, replaced }) => leaf.isDisposed || leaf.replaced !== replaced),
      "BAD_STATE",
      "replay",
      () => "a tensor that the recorded step works on was disposed, or replaced in its module.",
      "Keep it, and record the step again.",
    );
    const hasOther = this.#leaves.some(({ leaf, grad }) => leaf.grad !== grad);
    check(
      !hasOther,
      "BAD_STATE",
      "replay",
      () => "gradients must be as the recorded step left them, got one that was computed, assigned or cleared since.",
      "End steps with zeroGrad(), or record the step again.",
    );
    check(
      ![...this.recorder.reached].some(({ gradientHooks }) => gradientHooks),
      "BAD_STATE",
      "replay",
      () => "onGradient was called: remove the hook.",
    );
    const switched = [...this.#leaves, ...this.#needed].find(
      ({ leaf, requiresGrad }) => leaf.requiresGrad !== requiresGrad,
    );
    check(
      switched === undefined,
      "BAD_STATE",
      "replay",
      () => `requiresGrad of a tensor is ${switched!.leaf.requiresGrad}, and was ${switched!.requiresGrad}.`,
      "Record the step again.",
    );
  }

  /** Gives the memory of the recorded launches back, and the results that the body made. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#release();
  }

  #release(): void {
    if (this.#replays > 0) return;
    if (!this.pool.isClosed) for (const part of this.#parts) part.dispose();
    for (const memory of this.#memories) this.pool.unpin(memory);
    for (const tensor of this.kept) tensor.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** For console.log in Node. */
  [inspectSymbol](): string {
    if (this.#disposed) return "Recording(disposed)";
    const segments = this.recorder.parts.filter((part) => part instanceof Segment);
    return `Recording(launches=${segments.reduce((sum, { launches }) => sum + launches.length, 0)})`;
  }
}

/** The launches between two hooks. */
class RecordedSegment {
  readonly #own: RecordedLaunches;
  /** What outlives the body, and has other contents after each replay. */
  #written: Int32Array = new Int32Array();
  #returned = -1;
  /** Of the launches that are steps, by their index: others in each replay. */
  readonly #scalars = new Map<number, readonly Scalar[]>();

  constructor(
    private readonly backend: Backend,
    private readonly segment: Segment,
    /** Hooks run before it, and may change what was checked when the replay began. */
    private readonly isAfterHooks: boolean,
  ) {
    this.#own = backend.record?.(segment.launches) ?? oneByOne(backend, segment.launches);
    this.#takeNumbers();
  }

  /** Results may be disposed before the recording is: what has their numbers then was not written. */
  #takeNumbers(): void {
    if (this.#returned === returnedNumbers()) return;
    this.#returned = returnedNumbers();
    this.#written = versionNumbers([...this.segment.written].filter((storage) => storage.isAlive));
  }

  run(): void {
    const { repeated, draws } = this.segment;
    let renewed = 0;
    if (this.isAfterHooks) this.segment.check();
    try {
      for (const [index, step] of repeated) {
        this.#scalars.set(index, step.renew());
        renewed++;
      }
      for (const draw of draws) this.backend.write(draw.memory, draw.byteOffset, draw.bytes());
      this.#own.replay(this.#scalars);
    } catch (error) {
      for (const step of [...repeated.values()].slice(0, renewed).reverse()) step.undo();
      throw error;
    }
    this.#takeNumbers();
    countOverwrites(this.#written);
    for (const step of repeated.values()) step.launched();
  }

  dispose(): void {
    this.#own.dispose();
  }
}

/** Replays on devices that have no better way. */
function oneByOne(backend: Backend, launches: readonly Launch[]): RecordedLaunches {
  return {
    replay(scalars) {
      launches.forEach((launch, i) => {
        const renewed = scalars.get(i);
        backend.launch(renewed === undefined ? launch : ({ ...launch, scalars: renewed } as Launch));
      });
    },
    dispose() {},
  };
}
