/** A step recorded once and replayed: the launches without the tensors, tape and checks that led to them. */
import type { Backend, RecordedLaunches } from "./backend/backend";
import { type Memory, slicesOf } from "./backend/memory";
import type { Launch } from "./backend/spec";
import type { DeviceMemory } from "./device-memory";
import { OptError } from "./errors";

/** The scalars of a rule launch in the next step, and what counts that step once all launches have theirs. */
export interface Renewal {
  readonly scalars: readonly number[];
  commit(): void;
}

/** The launches of a body while it runs, and the memory that they use. */
export class Recorder {
  readonly launches: Launch[] = [];
  readonly renewals = new Map<number, () => Renewal>();
  /** Memory that was freed meanwhile: launches still use it. */
  readonly freed: Memory[] = [];

  add(launch: Launch, renew?: () => Renewal): void {
    if (renew !== undefined) this.renewals.set(this.launches.length, renew);
    this.launches.push(launch);
  }
}

export class Recording<Result> {
  /** What the body returned. Its tensors have new contents after each replay; those that were made inside live as long as the recording. */
  readonly result: Result;
  private readonly memories: ReadonlySet<Memory>;
  private readonly own: RecordedLaunches;
  private disposed = false;

  /** @internal Use `device.record`. */
  constructor(
    backend: Backend,
    private readonly pool: DeviceMemory,
    private readonly recorder: Recorder,
    result: Result,
  ) {
    this.result = result;
    this.memories = new Set(recorder.launches.flatMap((launch) => [...slicesOf(launch)].map((slice) => slice.memory)));
    this.own = backend.record?.(recorder.launches) ?? oneByOne(backend, recorder.launches);
    for (const memory of this.memories) pool.pin(memory);
    for (const memory of recorder.freed) pool.free(memory); // the pinned ones stay until dispose
  }

  /**
   * Does again what the body launched, on the same memory: put new data into the same tensors with `set` before.
   * Optimizers inside count a step and use their groups' present options (a schedule goes on).
   *
   * @throws OptError DISPOSED after dispose; BAD_ARGUMENT or BAD_STATE if options were set that the recorded rule does not cover.
   * Nothing has changed then.
   */
  replay(): void {
    if (this.disposed)
      throw new OptError("DISPOSED", "replay", "the recording was disposed.", "Record the step again.");
    const renewed = [...this.recorder.renewals].map(([index, renew]) => ({ index, renewal: renew() }));
    for (const { renewal } of renewed) renewal.commit();
    this.own.replay(new Map(renewed.map(({ index, renewal }) => [index, renewal.scalars])));
  }

  /** Gives the memory of the recorded launches back. */
  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    this.own.dispose();
    for (const memory of this.memories) this.pool.unpin(memory);
  }

  [Symbol.dispose](): void {
    this.dispose();
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
