/** An open device: a backend, its compiled kernels, and the count of what lives on it. */
import type { Backend } from "./backend/backend";
import type { Memory } from "./backend/memory";
import { type Kernel, type Kind, type Launch, type Spec, specKey } from "./backend/spec";
import { DeviceMemory } from "./device-memory";
import type { ComputeDType, TypedArray } from "./dtype";
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
  private readonly pool: DeviceMemory;
  private liveTensors = 0;

  /** @internal Use `init`. */
  constructor(name: string, backend: Backend) {
    this.name = name;
    this.backend = backend;
    this.pool = new DeviceMemory(backend);
  }

  /** Resolves when all work enqueued so far is done. */
  sync(): Promise<void> {
    return this.backend.sync();
  }

  /** Live memory: bytes held by tensors, and how many tensors hold them. */
  memory(): { bytes: number; tensors: number } {
    return { bytes: this.pool.liveBytes, tensors: this.liveTensors };
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
      for (const memory of recorder.freed) this.pool.free(memory);
      throw error;
    }
    this.recorder = undefined;
    return new Recording(this.backend, this.pool, recorder, result);
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
  allocate(bytes: number): Memory {
    return this.pool.allocate(bytes);
  }

  /** @internal */
  wrap(array: TypedArray): Memory | undefined {
    return this.pool.wrap(array);
  }

  /** @internal Memory that is freed while a step is recorded stays until the recording has it. */
  free(memory: Memory): void {
    if (this.recorder === undefined) this.pool.free(memory);
    else this.recorder.freed.push(memory);
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
