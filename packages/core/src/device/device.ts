/** An open device: a backend, its compiled kernels, and the count of what lives on it. */
import type { Backend } from "../backend/backend";
import type { Memory, Slice } from "../backend/memory";
import { type Kernel, type Kind, type Launch, type Spec, specKey } from "../backend/spec";
import { check } from "../errors/errors";
import { inspectSymbol } from "../host/inspect-symbol";
import type { Program } from "../rule/program";
import { byteSize, type ComputeDType, type MapDType, type TypedArray } from "../values/dtype";
import { denseStrides, sizeOf } from "../values/shape";
import { DeviceMemory } from "./device-memory";
import { runsOnce } from "./host-code";
import { type Overlapped, overlapped } from "./overlap";
import type { ScalarSource } from "./scalar-source";
import { activeTracer, type Overwritable, openTracer } from "./tracer";
import { watching } from "./watcher";

/** An open device, as `init` returns it: it counts its memory, and is where tensors live. */
export class Device {
  /** What `init` was asked for: "wasm", "cuda:1". */
  readonly name: string;
  readonly #kernels = new Map<string, Kernel>();
  /** Those of maps again, found without building a key: one elementwise op is mostly this look-up. */
  #maps = mapCaches();
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

  /**
   * True where training in float32 gives the same bits as on every other portable device: js, cpu with any processor and number of threads,
   * and wasm in engines whose relaxed SIMD rounds once (Node 22 and later, Deno, Chromium; not Node 20 or Bun).
   *
   * @example
   * const device = await init();
   * if (!device.portable) console.warn(`${device.name} rounds in its own way`);
   */
  get portable(): boolean {
    return this.backend.portable ?? false;
  }

  /** True where memory is the host's own (js, wasm, cpu): reading a tensor waits for nothing. */
  get isHost(): boolean {
    const { hostView, sharesMemory = false } = this.backend;
    return hostView !== undefined || sharesMemory;
  }

  /** Resolves when all work enqueued so far is done. */
  async sync(): Promise<void> {
    return this.pool.relieve(this.backend.sync());
  }

  /**
   * Waits for the work enqueued so far, then gives back all memory and threads of the device; the next `init` opens it again.
   * What is done with its tensors and compiled functions afterwards throws DISPOSED, but for `dispose`. `js` always stays open.
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
    this.#kernels.clear();
    this.#maps = mapCaches();
    this.pool.close();
    backend.close();
  }

  /** Live memory: bytes held by tensors, and how many tensors hold them. */
  memory(): { bytes: number; tensors: number } {
    return { bytes: this.pool.bytes, tensors: this.pool.tensors };
  }

  /** For console.log in Node. */
  [inspectSymbol](): string {
    const { tensors, bytes } = this.memory();
    return `Device(${this.name}, tensors=${tensors}, bytes=${bytes})`;
  }

  /** @internal @throws OptError UNSUPPORTED inside a compiled function */
  checkReadable(): void {
    runsOnce("compile", "read a tensor inside", "Return the tensor, and read it outside.");
  }

  /** @internal */
  allocate(bytes: number): Memory {
    const tracer = activeTracer();
    tracer?.launches(this);
    const memory = tracer?.waiting ? this.backend.reserve!(bytes) : this.pool.allocate(bytes);
    tracer?.allocated(memory);
    return memory;
  }

  /** @internal */
  wrap(array: TypedArray): Memory | undefined {
    if (this.backend.wrap !== undefined)
      runsOnce("compile", "work in an array of the host", "Make the tensor outside.");
    return this.pool.wrap(array);
  }

  /** @internal While a function is traced, its trace keeps the memory until the end. */
  free(memory: Memory): void {
    if (!openTracer()?.frees(this, memory)) this.pool.free(memory);
  }

  /** @internal The kernel of a spec, compiled at its first use. */
  kernel<K extends Kind>(spec: Spec<K>): Kernel<K> {
    const some = spec as unknown as Spec;
    const known = some.kind === "map" ? this.#maps[some.dtype].get(some.program) : undefined;
    if (known !== undefined) return known as unknown as Kernel<K>;
    const key = specKey(some);
    let kernel = this.#kernels.get(key);
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
      this.#kernels.set(key, kernel);
    }
    if (some.kind === "map") this.#maps[some.dtype].set(some.program, kernel);
    return kernel as unknown as Kernel<K>;
  }

  /** @internal Memory of a tensor was written. */
  overwrote(storage: Overwritable): void {
    activeTracer()?.overwrote(storage);
  }

  /** @internal Host data in. `again` makes it in each run of a compiled function, which otherwise takes it for a constant. */
  write(slice: Slice, bytes: Uint8Array, again?: () => Uint8Array): void {
    if (!activeTracer()?.wrote(this, slice, bytes, again)) this.backend.write(slice.memory, slice.byteOffset, bytes);
  }

  /** @internal `scalarSource`: the scalars of each run of a compiled function. */
  launch(launch: Launch, scalarSource?: ScalarSource): void {
    const input = overlapped(launch, this.pool.wrapped);
    if (input !== undefined) {
      this.#launchOnCopy(input, scalarSource);
      return;
    }
    const tracer = activeTracer();
    tracer?.launches(this);
    if (!tracer?.waiting) {
      const present = launch.kind === "rule" && launch.rows !== undefined ? this.#ofRows(launch) : launch;
      if (watching.watcher === null) this.backend.launch(present);
      else watching.watcher.launch(this, present, () => this.backend.launch(present));
    }
    tracer?.launched(launch, scalarSource);
  }

  #launchOnCopy({ slice, dtype, shape, strides, isAliased, reading }: Overlapped, scalarSource?: ScalarSource): void {
    if (isAliased) activeTracer()?.aliases();
    const length = sizeOf(shape);
    const memory = this.allocate(length * byteSize(dtype));
    const copy: Slice = { memory, byteOffset: 0, length };
    const kernel = this.kernel({ kind: "copy", from: dtype, to: dtype });
    const [sourceStrides, targetStrides] = [strides, denseStrides(shape)];
    try {
      this.launch({ kind: "copy", kernel, source: slice, target: copy, shape, sourceStrides, targetStrides });
      this.launch(reading(copy), scalarSource);
    } finally {
      this.free(memory);
    }
  }

  /** The launch for the rows that are listed now. */
  #ofRows({ rows, slicesOfRows, ...launch }: Launch<"rule">): Launch<"rule"> {
    const { memory, byteOffset, length } = rows!;
    const bytes = this.backend.readSync!(memory, byteOffset, 4 * length);
    const list = new Int32Array(bytes.slice().buffer);
    return { ...launch, tensors: slicesOfRows!(launch, list) };
  }
}

function mapCaches(): Record<MapDType, WeakMap<Program, Kernel>> {
  return { f32: new WeakMap(), f64: new WeakMap(), i32: new WeakMap() };
}
