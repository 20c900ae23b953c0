/** The `wasm` backend: one memory, kernels emitted per spec, launches that are done when they return. */
import { checkOptions, OptError } from "@opt/core";
import {
  type Backend,
  byteSize,
  type ComputeDType,
  environmentVariable,
  FUSED_KINDS,
  type Kernel,
  type Kind,
  type Launch,
  type Memory,
  type PreparedLaunches,
  type Scalar,
  type Slice,
  type Spec,
  viewElements,
} from "@opt/core/backend";
import { loadFma } from "./emit/fma";
import { HOST_FUNCTIONS } from "./host";
import { type Execution, type KernelSource, numbersOf, type Split, type Target } from "./kernel";
import { KERNELS } from "./kernels";
import { ALIGNMENT } from "./memory/allocator";
import { Block, LinearMemory } from "./memory/linear";
import { prepared } from "./prepared";
import { probeTarget, simdProbe } from "./target";
import { availableThreads } from "./threads/platform";
import type { Entry, ThreadPool } from "./threads/pool";

export interface WasmOptions {
  /** Default: what `OPT_NUM_THREADS` says, else all cores up to 16. */
  readonly threads?: number;
}

interface TestedOptions extends WasmOptions {
  /** As if the engine could not do what it can. */
  readonly target?: Partial<Target>;
}

/** More threads than this do not make memory faster. */
const MAXIMUM_THREADS = 16;
/** Each has a heap of its own: thousands end the process. */
const MAXIMUM_ASKED = 256;

/** Scratch that is kept, so that ordinary launches allocate nothing. */
const SCRATCH_BYTES = 65_536;

interface WasmKernel<K extends Kind = Kind> extends Kernel<K> {
  readonly entries: ReadonlyMap<string, Entry>;
  /** It imports functions of the host, which only the main thread has. */
  readonly single: boolean;
}

/**
 * @throws OptError DEVICE_UNAVAILABLE without WebAssembly SIMD; BAD_ARGUMENT for unknown options, and if the number of threads is not 1 to 256
 */
export async function openWasmBackend(options: TestedOptions = {}): Promise<WasmBackend> {
  checkOptions("wasm", options, { threads: "number", target: "object" });
  const threads = options.threads ?? requestedThreads() ?? Math.min(availableThreads(), MAXIMUM_THREADS);
  if (!Number.isInteger(threads) || threads < 1 || threads > MAXIMUM_ASKED) {
    throw new OptError(
      "BAD_ARGUMENT",
      "wasm",
      `threads must be 1 to ${MAXIMUM_ASKED}, got ${threads}.`,
      "See OPT_NUM_THREADS.",
    );
  }
  const shared = threads > 1 && typeof SharedArrayBuffer === "function";
  const target = { ...probeTarget(shared), ...options.target };
  await Promise.all([KERNELS.load(), loadFma(target)]);
  const memory = new LinearMemory(shared);
  const pool = shared ? await startPool(memory, threads) : undefined;
  return new WasmBackend(memory, target, pool);
}

/** Pages that may not share memory never load the pool. */
async function startPool({ memory }: LinearMemory, threads: number): Promise<ThreadPool> {
  const { ThreadPool } = await import("./threads/pool");
  return ThreadPool.start(memory, threads, simdProbe());
}

function requestedThreads(): number | undefined {
  const text = environmentVariable("OPT_NUM_THREADS");
  return text === undefined ? undefined : Number(text);
}

export class WasmBackend implements Backend, Execution {
  readonly name = "wasm";
  readonly dtypes = ["f32", "f64"] as const;
  readonly sharesMemory = true;
  readonly exact = true;
  readonly fuses = FUSED_KINDS;
  readonly epilogues = true;
  readonly windows = "right";
  /** See `enableQ8`. */
  declare readonly packs?: boolean;
  /** See `enableStochasticRounding`. */
  declare readonly draws?: boolean;
  #kernel: WasmKernel | undefined;
  readonly #scratch: Block;
  #scratchUsed = 0;
  /** What a launch needs beyond. */
  readonly #overflow: Block[] = [];

  constructor(
    readonly memory: LinearMemory,
    readonly target: Target,
    private readonly pool: ThreadPool | undefined,
  ) {
    this.#scratch = memory.allocate(SCRATCH_BYTES);
  }

  /** Engines without a fused multiply-add add up products with two roundings. */
  get portable(): boolean {
    return this.target.fused.f32;
  }

  get threads(): number {
    return this.pool?.threads ?? 1;
  }

  allocate(bytes: number): Block {
    return this.memory.allocate(bytes);
  }

  reserve(bytes: number): Memory {
    return new Block(0, bytes);
  }

  free(memory: Memory): void {
    this.memory.free(memory as Block);
  }

  write(memory: Memory, byteOffset: number, bytes: Uint8Array): void {
    this.memory.write((memory as Block).address + byteOffset, bytes);
  }

  async read(memory: Memory, byteOffset: number, bytes: number): Promise<Uint8Array> {
    return this.readSync(memory, byteOffset, bytes);
  }

  readSync(memory: Memory, byteOffset: number, bytes: number): Uint8Array {
    return this.memory.read((memory as Block).address + byteOffset, bytes);
  }

  readInto(memory: Memory, byteOffset: number, bytes: Uint8Array): void {
    this.memory.readInto((memory as Block).address + byteOffset, bytes);
  }

  kernel<K extends Kind>(spec: Spec<K>): Kernel<K> {
    // What reads windows comes with what unfolds them.
    if ("windows" in spec) KERNELS.of("unfold");
    const binary = (KERNELS.of(spec.kind) as KernelSource<K>).emit(spec, this.target).build();
    const module = new WebAssembly.Module(binary);
    const imports = { env: { memory: this.memory.memory, ...HOST_FUNCTIONS } };
    const { exports } = new WebAssembly.Instance(module, imports);
    const single = this.pool === undefined || WebAssembly.Module.imports(module).length > 1;
    const copy = single ? undefined : this.memory.allocate(binary.length);
    if (copy !== undefined) this.memory.write(copy.address, binary);
    const entries = Object.entries(exports).map(([name, call], index): [string, Entry] => [
      name,
      { call: call as Entry["call"], index, moduleAddress: copy?.address ?? 0, moduleBytes: binary.length },
    ]);
    return { spec, entries: new Map(entries), single } as WasmKernel<K>;
  }

  launch(launch: Launch): void {
    this.#kernel = launch.kernel as WasmKernel;
    try {
      KERNELS.of(launch.kind).launch(launch, this);
    } finally {
      this.#scratchUsed = 0;
      for (const block of this.#overflow) this.memory.free(block);
      this.#overflow.length = 0;
    }
  }

  prepare(launches: readonly Launch[], open: readonly Memory[]): PreparedLaunches {
    return prepared(this, launches, open);
  }

  load(): Promise<void> {
    return KERNELS.load();
  }

  async sync(): Promise<void> {}

  close(): void {
    this.pool?.close();
  }

  address({ memory, byteOffset }: Slice): number {
    return (memory as Block).address + byteOffset;
  }

  scalar(scalar: Scalar, dtype: ComputeDType): number {
    if (typeof scalar === "number") return scalar;
    const bytes = this.readSync(scalar.memory, scalar.byteOffset, byteSize(dtype));
    return viewElements(bytes.buffer, bytes.byteOffset, 1, dtype)[0]!;
  }

  scratch(bytes: number): number {
    const used = this.#scratchUsed + Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
    if (used <= SCRATCH_BYTES) {
      const address = this.#scratch.address + this.#scratchUsed;
      this.#scratchUsed = used;
      return address;
    }
    const block = this.memory.allocate(bytes);
    this.#overflow.push(block);
    return block.address;
  }

  table(words: ArrayLike<number>): number {
    const address = this.scratch(4 * words.length);
    const { words: memory } = this.memory;
    for (let i = 0; i < words.length; i++) memory[address / 4 + i] = words[i]!; // `set` copies a list first
    return address;
  }

  run(name: string, split: Split, ...args: readonly (number | Slice)[]): void {
    this.call(this.#kernel as WasmKernel, name, split, numbersOf(this, args));
  }

  /** `run`, of this kernel. */
  call(kernel: Kernel, name: string, split: Split, args: readonly number[]): void {
    const { entries, single } = kernel as WasmKernel;
    const entry = entries.get(name) as Entry;
    const parts = single ? 1 : (this.pool as ThreadPool).parts(split);
    if (parts > 1) (this.pool as ThreadPool).run(entry, split, parts, args);
    else if (split.range > 0) entry.call(0, split.range, ...args);
  }
}
