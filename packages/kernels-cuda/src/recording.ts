/** A step recorded into a CUDA graph: the same launches on the same memory, started with one call. */
import { OptError } from "@opt/core";
import { CAPTURE_RELAXED } from "./driver";
import type { Launcher } from "./launcher";
import type { CudaMemory } from "./memory";

/** For the scalars of all rule launches of a step: 2048 numbers. */
const SCALAR_BYTES = 16_384;

export class Recording {
  /** What the launches read and write. */
  readonly memories = new Set<CudaMemory>();
  private readonly values = new Float64Array(SCALAR_BYTES / 8);
  private readonly counts: number[] = [];
  private used = 0;
  private readonly area: CudaMemory;
  private executable = 0;
  private giveBack: () => void = () => {};
  private disposed = false;

  private constructor(private readonly on: Launcher) {
    this.area = on.allocator.allocate(SCALAR_BYTES);
  }

  /** Runs `body`, whose launches are recorded and not carried out. @throws OptError UNSUPPORTED inside of another recording */
  static record(on: Launcher, body: () => void): Recording {
    if (on.recording !== undefined) throw refusal("a recorded step may not record another.");
    on.gpu.use();
    const { gpu } = on;
    const recording = new Recording(on);
    gpu.check(gpu.driver.cuStreamBeginCapture_v2(gpu.stream, CAPTURE_RELAXED), "recording a step");
    on.recording = recording;
    on.allocator.hold();
    let graph = 0;
    try {
      try {
        body();
      } finally {
        on.recording = undefined;
        recording.giveBack = on.allocator.release();
        graph = gpu.get((out) => gpu.driver.cuStreamEndCapture(gpu.stream, out), "recording a step");
      }
      recording.executable = gpu.get(
        (out) => gpu.driver.cuGraphInstantiateWithFlags(out, graph, 0),
        "building the recorded step",
      );
      gpu.check(gpu.driver.cuStreamSynchronize(gpu.transferStream), "recording a step");
    } catch (error) {
      recording.dispose();
      throw error;
    } finally {
      if (graph !== 0) gpu.driver.cuGraphDestroy(graph);
    }
    return recording;
  }

  /** Where the scalars of the next rule launch will lie. @throws OptError UNSUPPORTED past 2048 of them */
  scalars(given: readonly number[]): number {
    if (this.used + given.length > this.values.length)
      throw refusal(`a recorded step has room for ${this.values.length} scalars.`);
    this.values.set(given, this.used);
    const address = this.area.address + this.used * 8;
    this.used += given.length;
    this.counts.push(given.length);
    return address;
  }

  /**
   * Carries the step out, with new scalars for its rule launches in their order, or with the last ones.
   *
   * @throws OptError DISPOSED if it or memory that it uses is gone; BAD_ARGUMENT if the scalars are not as many as recorded
   */
  replay(scalars?: readonly (readonly number[])[]): void {
    const { gpu, staging } = this.on;
    if (this.disposed || [...this.memories].some(({ freed }) => freed)) {
      const what = this.disposed ? "the recording was disposed" : "memory of the recorded step was freed";
      throw new OptError("DISPOSED", "cuda recording", `${what}.`, "Record the step again.");
    }
    if (scalars !== undefined) this.values.set(this.checked(scalars));
    gpu.use();
    staging.upload(this.area.address, new Uint8Array(this.values.buffer, 0, this.used * 8), gpu.stream);
    gpu.check(gpu.driver.cuGraphLaunch(this.executable, gpu.stream), "replaying a step");
  }

  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    if (this.executable !== 0) this.on.gpu.driver.cuGraphExecDestroy(this.executable);
    this.giveBack();
    this.on.allocator.free(this.area);
  }

  private checked(scalars: readonly (readonly number[])[]): number[] {
    if (scalars.length === this.counts.length && scalars.every((list, i) => list.length === this.counts[i]))
      return scalars.flat();
    const got = scalars.map((list) => list.length).join(", ");
    const problem = `the step's rule launches take ${this.counts.join(", ")} scalars, got ${got || "none"}.`;
    throw new OptError("BAD_ARGUMENT", "cuda recording", problem, "Give one list a launch, in their order.");
  }
}

export function refusal(problem: string): OptError {
  return new OptError("UNSUPPORTED", "cuda recording", problem, "Do it before or after the recording.");
}
