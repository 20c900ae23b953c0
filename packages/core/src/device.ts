/** An open device: a backend, its compiled kernels, and the count of what lives on it. */
import type { Backend, Memory } from "./backend/backend";
import { type Kernel, type Kind, type Launch, type Spec, specKey } from "./backend/spec";
import type { ComputeDType } from "./dtype";
import { OptError } from "./errors";
import type { Program } from "./rule/program";

export class Device {
  /** What `init` was asked for: "wasm", "cuda:1". */
  readonly name: string;
  /** @internal */
  readonly backend: Backend;
  private readonly kernels = new Map<string, Kernel>();
  /** Those of maps again, found without building a key: one elementwise op is mostly this look-up. */
  private readonly maps = { f32: new WeakMap<Program, Kernel>(), f64: new WeakMap<Program, Kernel>() };
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

  /** @internal */
  launch(launch: Launch): void {
    this.backend.launch(launch);
  }
}
