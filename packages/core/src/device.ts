/** An open device: a backend, its compiled kernels, and the count of what lives on it. */
import type { Backend, Memory } from "./backend/backend";
import { type Kernel, type Kind, type Launch, type Spec, specKey } from "./backend/spec";
import type { ComputeDType } from "./dtype";
import { OptError } from "./errors";
import { Recorder, Recording, type Renewal } from "./recording";
import type { Program } from "./rule/program";
import { tidy } from "./scope";

export class Device {
  /** What `init` was asked for: "wasm", "cuda:1". */
  readonly name: string;
  /** @internal */
  readonly backend: Backend;
  private readonly kernels = new Map<string, Kernel>();
  /** Those of maps again, found without building a key: one elementwise op is mostly this look-up. */
  private readonly maps = { f32: new WeakMap<Program, Kernel>(), f64: new WeakMap<Program, Kernel>() };
  private recorder: Recorder | undefined;
  /** Memory that recordings use, by how many of them. */
  private readonly pins = new Map<Memory, number>();
  /** Pinned memory that its owners have freed. */
  private readonly orphans = new Set<Memory>();
  private liveBytes = 0;
  private liveTensors = 0;

  /** @internal Use `init`. */
  constructor(name: string, backend: Backend) {
    this.name = name;
    this.backend = backend;
  }

  /** Resolves when all work enqueued so far is done. */
  sync(): Promise<void> {
    return this.backend.sync();
  }

  /** Live memory: bytes held by tensors, and how many tensors hold them. */
  memory(): { bytes: number; tensors: number } {
    return { bytes: this.liveBytes, tensors: this.liveTensors };
  }

  /**
   * Runs `body` once and records what it launches, to be replayed without JavaScript's share of the work.
   * Control flow and data made from host values inside are those of this first run; reading results inside is refused.
   *
   * @throws OptError UNSUPPORTED if `body` reads a tensor or records; BAD_ARGUMENT if it is asynchronous
   * @example
   * const images = randn([5, 4]); // filled again with images.set(batch) before each replay
   * const step = images.device.record(() => {
   *   const loss = crossEntropy(model.forward(images), y);
   *   loss.backward();
   *   optimizer.step();
   *   optimizer.zeroGrad();
   *   return loss;
   * });
   * step.replay();
   * console.log(await step.result.item());
   * step.dispose();
   */
  record<Result>(body: () => Result): Recording<Result> {
    if (this.recorder !== undefined) throw notRecordable("must not record another");
    const recorder = new Recorder();
    this.recorder = recorder;
    let result: Result;
    try {
      result = tidy(body);
    } catch (error) {
      this.recorder = undefined;
      for (const memory of recorder.freed) this.free(memory);
      throw error;
    }
    this.recorder = undefined;
    return new Recording(this, recorder, result);
  }

  /** @internal Runs what a recorded step does only the first time: making optimizer state. */
  once<Result>(body: () => Result): Result {
    const { recorder } = this;
    this.recorder = undefined;
    try {
      return body();
    } finally {
      this.recorder = recorder;
    }
  }

  /** @internal @throws OptError UNSUPPORTED while a step is being recorded */
  checkReadable(): void {
    if (this.recorder !== undefined) throw notRecordable("must not read a tensor");
  }

  /** @internal */
  pin(memory: Memory): void {
    this.pins.set(memory, (this.pins.get(memory) ?? 0) + 1);
  }

  /** @internal */
  unpin(memory: Memory): void {
    const others = this.pins.get(memory)! - 1;
    if (others > 0) this.pins.set(memory, others);
    else {
      this.pins.delete(memory);
      if (this.orphans.delete(memory)) this.free(memory);
    }
  }

  /** @internal */
  allocate(bytes: number): Memory {
    const memory = this.backend.allocate(bytes);
    this.liveBytes += memory.bytes;
    return memory;
  }

  /** @internal */
  wrap(array: Parameters<NonNullable<Backend["wrap"]>>[0]): Memory | undefined {
    const memory = this.backend.wrap?.(array);
    if (memory !== undefined) this.liveBytes += memory.bytes;
    return memory;
  }

  /** @internal */
  free(memory: Memory): void {
    if (this.recorder !== undefined) {
      this.recorder.freed.push(memory);
      return;
    }
    if (this.pins.has(memory)) {
      this.orphans.add(memory);
      return;
    }
    this.liveBytes -= memory.bytes;
    this.backend.free(memory);
  }

  /** @internal */
  countTensors(change: 1 | -1): void {
    this.liveTensors += change;
  }

  /** @internal The kernel of a spec, compiled at its first use. */
  kernel<K extends Kind>(spec: Spec<K>): Kernel<K> {
    const some = spec as unknown as Spec;
    const known = some.kind === "map" ? this.maps[some.dtype].get(some.program) : undefined;
    if (known !== undefined) return known as unknown as Kernel<K>;
    const key = specKey(some);
    let kernel = this.kernels.get(key);
    if (kernel === undefined) {
      const { dtype } = spec as { dtype?: ComputeDType };
      if (dtype !== undefined && !this.backend.dtypes.includes(dtype)) {
        throw new OptError(
          "UNSUPPORTED",
          this.name,
          `${spec.kind} computes in ${this.backend.dtypes.join(" or ")}, got ${dtype}.`,
          `Cast with .to("f32"), or move to another device.`,
        );
      }
      kernel = this.backend.kernel(spec) as Kernel;
      this.kernels.set(key, kernel);
    }
    if (some.kind === "map") this.maps[some.dtype].set(some.program, kernel);
    return kernel as unknown as Kernel<K>;
  }

  /** @internal `renew` gives a rule launch its scalars when it is replayed. */
  launch(launch: Launch, renew?: () => Renewal): void {
    this.backend.launch(launch);
    this.recorder?.add(launch, renew);
  }
}

function notRecordable(problem: string): OptError {
  return new OptError("UNSUPPORTED", "record", `a recorded step ${problem}.`, "Do it before or after device.record.");
}
