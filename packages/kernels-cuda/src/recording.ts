/** Launches recorded into a CUDA graph: the same kernels on the same memory, started with one call. */

import { OptError } from "@opt/core";
import type { Launch, RecordedLaunches } from "@opt/core/backend";
import { CAPTURE_RELAXED } from "./driver";
import type { Launcher, OpenRecording } from "./launcher";
import { startLaunch } from "./launches";
import type { CudaMemory } from "./memory";

export class GraphRecording implements RecordedLaunches, OpenRecording {
  /** The scalars of all rule launches, whose arguments in the graph are fixed: kernels read these from memory. */
  private readonly values: Float64Array<ArrayBuffer>;
  private readonly places = new Map<number, { start: number; count: number }>();
  private readonly owned: CudaMemory[] = [];
  private executable = 0;
  private giveBack: () => void = () => {};
  private disposed = false;

  constructor(
    private readonly on: Launcher,
    launches: readonly Launch[],
  ) {
    let used = 0;
    launches.forEach((launch, index) => {
      if (launch.kind !== "rule") return;
      this.places.set(index, { start: used, count: launch.scalars.length });
      used += launch.scalars.length;
    });
    this.values = new Float64Array(used);
    const area = this.own(on.allocator.allocate(used * 8));
    try {
      this.capture(launches, area.address);
    } catch (error) {
      this.dispose();
      throw error;
    }
  }

  /** Memory that lives as long as the recording: tables, scalars. */
  own(memory: CudaMemory): CudaMemory {
    this.owned.push(memory);
    return memory;
  }

  /** Where the scalars of the launch that is being recorded lie. */
  scalarAddress = 0;

  replay(scalars: ReadonlyMap<number, readonly number[]>): void {
    const { gpu, staging } = this.on;
    if (this.disposed)
      throw new OptError("DISPOSED", gpu.where, "the recording was disposed.", "Record the step again.");
    for (const [index, list] of scalars) {
      const place = this.places.get(index);
      if (place?.count !== list.length) {
        const problem = `launch ${index} takes ${place?.count ?? "no"} scalars, got ${list.length}.`;
        throw new OptError("INTERNAL", gpu.where, problem, "Please report this: it is a bug in Opt.");
      }
      this.values.set(list, place.start);
    }
    gpu.use();
    staging.upload(this.owned[0]!.address, new Uint8Array(this.values.buffer), gpu.stream);
    gpu.check(gpu.driver.cuGraphLaunch(this.executable, gpu.stream), "replaying a step");
  }

  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    if (this.executable !== 0) this.on.gpu.driver.cuGraphExecDestroy(this.executable);
    this.giveBack();
    for (const memory of this.owned) memory.owner.free(memory);
  }

  private capture(launches: readonly Launch[], area: number): void {
    const { on } = this;
    const { gpu } = on;
    gpu.use();
    gpu.check(gpu.driver.cuStreamBeginCapture_v2(gpu.stream, CAPTURE_RELAXED), "recording a step");
    on.recording = this;
    on.allocator.hold();
    let graph = 0;
    try {
      launches.forEach((launch, index) => {
        const place = this.places.get(index);
        if (place !== undefined) {
          this.values.set((launch as Launch<"rule">).scalars, place.start);
          this.scalarAddress = area + place.start * 8;
        }
        startLaunch(on, launch);
      });
    } finally {
      on.recording = undefined;
      this.giveBack = on.allocator.release();
      graph = gpu.get((out) => gpu.driver.cuStreamEndCapture(gpu.stream, out), "recording a step");
    }
    try {
      this.executable = gpu.get(
        (out) => gpu.driver.cuGraphInstantiateWithFlags(out, graph, 0),
        "building the recorded step",
      );
      gpu.check(gpu.driver.cuStreamSynchronize(gpu.transferStream), "recording a step");
    } finally {
      gpu.driver.cuGraphDestroy(graph);
    }
  }
}
