/** Launches prepared as a CUDA graph: the same kernels on the same memory, started with one call. */

import { OptError } from "@opt/core";
import type { Launch, PreparedLaunches, Scalar, Spec } from "@opt/core/backend";
import { sliceAddress, writeInteger } from "./arguments";
import { CAPTURE_RELAXED } from "./driver";
import type { Launcher, OpenCapture } from "./launcher";
import { startLaunch } from "./launches";
import type { CudaMemory } from "./memory";
import { scalarsBySlot } from "./rule-arguments";

export class LaunchGraph implements PreparedLaunches, OpenCapture {
  /** The scalars of all rule launches, whose arguments in the graph are fixed: kernels read these from memory. */
  readonly #values: Float64Array<ArrayBuffer>;
  readonly #places = new Map<number, { start: number; count: number; spec: Spec<"rule"> }>();
  readonly #owned: CudaMemory[] = [];
  #executable = 0;
  #giveBack: () => void = () => {};
  #disposed = false;

  constructor(
    private readonly on: Launcher,
    launches: readonly Launch[],
  ) {
    let used = 0;
    launches.forEach((launch, index) => {
      if (launch.kind !== "rule") return;
      const { kernel, scalars } = launch;
      this.#places.set(index, { start: used, count: scalars.length, spec: kernel.spec });
      used += scalarsBySlot(kernel.spec, scalars).length;
    });
    this.#values = new Float64Array(used);
    const area = this.own(on.allocator.allocate(used * 8));
    try {
      this.#capture(launches, area.address);
    } catch (error) {
      this.dispose();
      throw error;
    }
  }

  /** Memory that lives as long as the graph: tables, scalars. */
  own(memory: CudaMemory): CudaMemory {
    this.#owned.push(memory);
    return memory;
  }

  /** Where the scalars of the launch that is being captured are. */
  scalarAddress = 0;

  /** Numbers as they are, and of what the device has the address. */
  #write(scalars: readonly Scalar[], start: number): void {
    const halves = new Uint32Array(this.#values.buffer);
    scalars.forEach((scalar, s) => {
      if (typeof scalar === "number") this.#values[start + s] = scalar;
      else writeInteger(halves, start + s, sliceAddress(this.on.allocator, scalar, "f32", 1));
    });
  }

  run(scalars: ReadonlyMap<number, readonly Scalar[]>): void {
    const { gpu, staging } = this.on;
    if (this.#disposed)
      throw new OptError("DISPOSED", gpu.where, "the prepared launches were disposed.", "Prepare them again.");
    for (const [index, list] of scalars) {
      const place = this.#places.get(index);
      if (place?.count !== list.length) {
        const problem = `launch ${index} takes ${place?.count ?? "no"} scalars, got ${list.length}.`;
        throw new OptError("INTERNAL", gpu.where, problem, "Please report this: it is a bug in Opt.");
      }
      this.#write(scalarsBySlot(place.spec, list), place.start);
    }
    gpu.use();
    staging.upload(this.#owned[0]!.address, new Uint8Array(this.#values.buffer), gpu.stream);
    gpu.check(gpu.driver.cuGraphLaunch(this.#executable, gpu.stream), "running prepared launches");
  }

  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    const { gpu } = this.on;
    if (this.#executable !== 0 && !gpu.isLost) {
      gpu.use();
      gpu.driver.cuGraphExecDestroy(this.#executable);
    }
    this.#giveBack();
    for (const memory of this.#owned) memory.owner.free(memory);
  }

  #capture(launches: readonly Launch[], area: number): void {
    const { gpu } = this.on;
    gpu.use();
    // Blocks of its tables may still be read by launches that are under way, and by replays of what was disposed.
    gpu.order(gpu.stream, gpu.transferStream);
    const graph = this.#captureGraph(launches, area);
    try {
      this.#executable = gpu.get((out) => gpu.driver.cuGraphInstantiateWithFlags(out, graph, 0), "building a graph");
    } finally {
      gpu.driver.cuGraphDestroy(graph);
    }
  }

  #captureGraph(launches: readonly Launch[], area: number): number {
    const { on } = this;
    const { gpu } = on;
    gpu.check(gpu.driver.cuStreamBeginCapture_v2(gpu.stream, CAPTURE_RELAXED), "capturing a graph");
    on.capture = this;
    on.allocator.hold();
    const ended = () => {
      on.capture = undefined;
      this.#giveBack = on.allocator.release();
      const graph = new BigUint64Array(1);
      const status = gpu.driver.cuStreamEndCapture(gpu.stream, graph);
      // What comes next, replays and others' use of given-back blocks, comes after the tables.
      gpu.order(gpu.transferStream, gpu.stream);
      return { graph: Number(graph[0]), status };
    };
    try {
      launches.forEach((launch, index) => {
        const place = this.#places.get(index);
        if (place !== undefined) {
          this.#write(scalarsBySlot(place.spec, (launch as Launch<"rule">).scalars), place.start);
          this.scalarAddress = area + place.start * 8;
        }
        startLaunch(on, launch);
      });
    } catch (error) {
      const { graph } = ended();
      if (graph !== 0) gpu.driver.cuGraphDestroy(graph);
      throw error;
    }
    const { graph, status } = ended();
    gpu.check(status, "capturing a graph");
    return graph;
  }
}
