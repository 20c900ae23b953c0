/** An open device: a backend, its compiled kernels, and the count of what lives on it. */
import type { Backend } from "../backend/backend";
import type { Memory, Slice } from "../backend/memory";
import { type Kernel, type Kind, type Launch, type Spec, specKey } from "../backend/spec";
import { check } from "../errors/errors";
import { inspectSymbol } from "../host/inspect-symbol";
import type { Program } from "../rule/program";
import type { ComputeDType, MapDType, TypedArray } from "../values/dtype";
import { DeviceMemory } from "./device-memory";
import { activeRecorder, Recorder, type Repeated } from "./recorder";
import { Recording } from "./recording";
import { checkRepeatable } from "./repeatable";
import { collect, type Scoped } from "./scope";

/** An open device, as `init` returns it: it records steps, counts its memory, and is where tensors live. */
export class Device {
  /** What `init` was asked for: "wasm", "cuda:1". */
  readonly name: string;
  private readonly kernels = new Map<string, Kernel>();
  /** Those of maps again, found without building a key: one elementwise op is mostly this look-up. */
  private maps = mapCaches();
  /** @internal */
  readonly pool: DeviceMemory;

  /** @internal Use `init`. `forget`: the registry's part of closing; without it the device stays open for good. */
  constructor(
    name: string,
    backend: Backend,
    private readonly forget?: () => void,
  ) {
    this.name = name;
    this.pool = new DeviceMemory(name, backend);
  }

  /** @internal @throws OptError DISPOSED once closed */
  get backend(): Backend {
    return this.pool.backend;
  }

  /** Resolves when all work enqueued so far is done. */
  async sync(): Promise<void> {
    return this.pool.relieve(this.backend.sync());
  }

  /**
   * Waits for the work enqueued so far, then gives back all memory and threads of the device; the next `init` opens it anew.
   * What is done with its tensors and recordings afterwards throws DISPOSED, but for `dispose`. `js` always stays open.
   *
   * @example
   * const device = await init("js");
   * await device.close();
   */
  async close(): Promise<void> {
    if (this.pool.isClosed || this.forget === undefined) return;
    this.forget();
    const { backend } = this;
    await backend.sync().catch(() => {}); // a lost device cannot finish its work
    if (this.pool.isClosed) return; // by another call meanwhile
    this.kernels.clear();
    this.maps = mapCaches();
    this.pool.close();
    backend.close();
  }

  /** Live memory: bytes held by tensors, and how many tensors hold them. */
  memory(): { bytes: number; tensors: number } {
    return { bytes: this.pool.bytes, tensors: this.pool.tensors };
  }

  /**
   * Runs `body` once and records what it launches, to be replayed without JavaScript's share of the work: replayed equals
   * run again, bit for bit, or is refused. Control flow and numbers inside are those of this first run, and tensors are the same
   * memory each time: what changes from step to step comes in by `set`, what is carried from one to the next is `set` inside.
   *
   * @throws OptError UNSUPPORTED for what a replay could not repeat: reading, data from the host (`tensor`, `set` with arrays),
   * another device, a schedule's step, gradients that the next run would find changed; BAD_ARGUMENT if `body` is asynchronous
   * @example
   * const images = randn([5, 4]); // filled again with images.set(batch) before each replay
   * const step = images.device.record(() => {
   *   optimizer.zeroGrad();
   *   const loss = crossEntropy(model.forward(images), y);
   *   loss.backward();
   *   optimizer.step();
   *   return loss;
   * });
   * step.replay();
   * console.log(await step.result.item());
   * step.dispose();
   */
  record<Result>(body: () => Result): Recording<Result> {
    const recorder = new Recorder(this);
    let kept: readonly Scoped[] = [];
    try {
      const collected = recorder.run(() => collect("record", body));
      kept = collected.kept;
      for (const tensor of kept) tensor.leave();
      recorder.finish();
      return new Recording(this.backend, this.pool, recorder, collected.result, kept);
    } catch (error) {
      for (const memory of recorder.freed) this.pool.free(memory);
      for (const tensor of kept) tensor.dispose();
      throw error;
    }
  }

  /** For console.log in Node. */
  [inspectSymbol](): string {
    const { tensors, bytes } = this.memory();
    return `Device(${this.name}, tensors=${tensors}, bytes=${bytes})`;
  }

  /** @internal @throws OptError UNSUPPORTED while a step is being recorded */
  checkReadable(): void {
    checkRepeatable("record", "reading a tensor");
  }

  /** @internal */
  allocate(bytes: number): Memory {
    const memory = this.pool.allocate(bytes);
    activeRecorder()?.allocated(memory);
    return memory;
  }

  /** @internal */
  wrap(array: TypedArray): Memory | undefined {
    const memory = this.pool.wrap(array);
    if (memory !== undefined) activeRecorder()?.wrote(undefined);
    return memory;
  }

  /** @internal Memory that is freed while a step is recorded stays until the recording has it. */
  free(memory: Memory): void {
    if (!activeRecorder()?.takes(this, memory)) this.pool.free(memory);
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
      check(
        dtype === undefined || this.backend.dtypes.includes(dtype),
        "UNSUPPORTED",
        this.name,
        () => `${spec.kind} computes in ${this.backend.dtypes.join(" or ")}, got ${dtype}.`,
        `Cast with .to("f32"), or move to another device.`,
      );
      kernel = this.backend.kernel(spec) as Kernel;
      this.kernels.set(key, kernel);
    }
    if (some.kind === "map") this.maps[some.dtype].set(some.program, kernel);
    return kernel as unknown as Kernel<K>;
  }

  /** @internal Host data in. A recorded step takes only what it can make again: `again`. */
  write({ memory, byteOffset }: Slice, bytes: Uint8Array, again?: () => Uint8Array): void {
    activeRecorder()?.wrote(again && { memory, byteOffset, bytes: again });
    this.backend.write(memory, byteOffset, bytes);
  }

  /** @internal `repeated` makes the launch of an optimizer's step that of the next one when it is replayed. */
  launch(launch: Launch, repeated?: () => Repeated): void {
    const recorder = activeRecorder();
    recorder?.checkDevice(this);
    this.backend.launch(launch);
    recorder?.launched(launch, repeated?.());
  }
}

function mapCaches(): Record<MapDType, WeakMap<Program, Kernel>> {
  return { f32: new WeakMap(), f64: new WeakMap(), i32: new WeakMap() };
}
