/** The `webgpu` backend: heaps, shaders written per spec, launches collected into few submits. */
import { OptError } from "@opt/core";
import type { Backend, Kernel, Kind, Launch, Memory, Slice, Spec } from "@opt/core/backend";
import { Commands, type Counters, UNIFORM_GRAIN } from "./device/commands";
import { Faults } from "./device/faults";
import { Pipelines } from "./device/pipelines";
import { Staging } from "./device/staging";
import type { KernelSource, Target } from "./kernel";
import { KERNELS } from "./kernels";
import { MERGE_WORD } from "./kernels/merge-word";
import { findBindings } from "./memory/binding-ranges";
import { type HeapMemory, Heaps } from "./memory/heaps";
import { memberNames, passesStart, type Shader, unitOf } from "./shader/shader";
import { Tables } from "./tables";

const MEBIBYTE = 2 ** 20;

export interface BackendLimits {
  /** Bytes of the first heap. By default 32 MiB. */
  readonly firstHeap?: number;
  /** For tests: as if the device's maxStorageBufferBindingSize were smaller. */
  readonly binding?: number;
  /** For tests: as if the device had no subgroups. */
  readonly subgroups?: boolean;
  /** For tests: as if the adapter were a GPU, or software. */
  readonly software?: boolean;
  /** For tests: as if one dimension of a grid could have no more workgroups than this. */
  readonly grid?: number;
}

interface WebGpuKernel<K extends Kind = Kind> extends Kernel<K> {
  readonly prepared: unknown;
}

/** What is fixed about a shader's launches. */
interface ShaderFacts {
  readonly units: readonly number[];
  readonly passesStart: readonly boolean[];
  readonly params: readonly (readonly [string, "u32" | "i32" | "f32"])[];
  readonly uniformBytes: number;
}

/** A WebGPU device as a backend of `@opt/core`. */
export class WebGpuBackend implements Backend {
  readonly name = "webgpu";
  readonly dtypes = ["f32", "i32"] as const;
  readonly exact = false;
  readonly packs = true;
  readonly draws = true;
  readonly software: boolean;
  /** @internal */
  readonly target: Target;
  /** @internal */
  readonly largestBinding: number;
  readonly #faults: Faults;
  readonly #commands: Commands;
  readonly #pipelines: Pipelines;
  readonly #heaps: Heaps;
  readonly #staging: Staging;
  readonly #tables: Tables;
  readonly #facts = new WeakMap<Shader, ShaderFacts>();
  readonly #bindings: number;
  readonly #largestGrid: number;
  #scratch: Memory[] = [];
  #closed = false;

  /** @internal Use `openWebGpuBackend`. */
  constructor(
    /** @internal */
    readonly device: GPUDevice,
    limits: BackendLimits = {},
    languageFeatures: ReadonlySet<string> = new Set(),
  ) {
    const { maxBufferSize, maxStorageBufferBindingSize, maxStorageBuffersPerShaderStage } = device.limits;
    this.#largestGrid = Math.min(limits.grid ?? LARGEST_GRID, device.limits.maxComputeWorkgroupsPerDimension);
    const binding = Math.min(limits.binding ?? maxStorageBufferBindingSize, maxStorageBufferBindingSize);
    const subgroups = device.features.has("subgroups") && languageFeatures.has("subgroup_id");
    this.largestBinding = binding;
    this.#bindings = maxStorageBuffersPerShaderStage;
    this.software = limits.software ?? isSoftware(device.adapterInfo);
    this.target = {
      subgroups: subgroups && limits.subgroups !== false,
      grain: this.software ? Math.max(1, Math.min(SOFTWARE_GRAIN, Math.floor(binding / 2 ** 13))) : 1,
    };
    this.#faults = new Faults(device);
    this.#commands = new Commands(device, this.#faults);
    this.#pipelines = new Pipelines(device, this.#faults, this.#commands.ring);
    this.#staging = new Staging(device, maxBufferSize);
    const heapLimits = { binding, buffer: maxBufferSize, firstHeap: limits.firstHeap ?? 32 * MEBIBYTE };
    this.#heaps = new Heaps(heapLimits, (bytes, label, failed) => this.#createBuffer(bytes, label, failed));
    this.#tables = new Tables(this);
    device.lost.then(({ message }) => {
      if (!this.#closed) this.#faults.lose(message);
    });
  }

  /** The device went away: everything but `close` throws DEVICE_LOST. */
  get lost(): boolean {
    return this.#faults.lost !== undefined;
  }

  /** What was done so far, to be tested and looked at. */
  get counters(): Counters & { pipelines: number; reserved: number; used: number } {
    return { ...this.#commands.counters, pipelines: this.#pipelines.compiled, ...this.#heaps.bytes };
  }

  allocate(bytes: number): Memory {
    this.#faults.checkAlive();
    return this.#heaps.allocate(bytes);
  }

  reserve(bytes: number): Memory {
    return { bytes };
  }

  free(memory: Memory): void {
    if (this.lost) return;
    const buffer = this.#heaps.free(memory as HeapMemory);
    if (buffer === undefined) return;
    this.#commands.submit();
    this.#pipelines.forget((memory as HeapMemory).heap.id);
    buffer.destroy();
  }

  #createBuffer(size: number, label: string, failed: () => void): GPUBuffer {
    const usage = 0x80 | 0x04 | 0x08; // STORAGE | COPY_SRC | COPY_DST
    const toError = (message: string) =>
      new OptError(
        "OUT_OF_MEMORY",
        "webgpu",
        `the device has no ${size} bytes (${message}); what was to lie there is lost.`,
        "Free tensors with dispose() or tidy(); what is made next asks for less at a time.",
      );
    const create = () => this.device.createBuffer({ label, size, usage });
    return this.#faults.watch("out-of-memory", create, (message) => {
      failed();
      return toError(message);
    });
  }

  write(memory: Memory, byteOffset: number, bytes: Uint8Array): void {
    this.#faults.checkAlive();
    if (bytes.length === 0) return;
    const { heap, start } = memory as HeapMemory;
    const first = start + byteOffset;
    const end = first + bytes.length;
    // Bytes that follow the end of the memory belong to nobody.
    const closes = byteOffset + bytes.length === memory.bytes;
    const from = Math.ceil(first / 4) * 4;
    const to = closes ? Math.ceil(end / 4) * 4 : Math.floor(end / 4) * 4;
    if (to > from) {
      const given = bytes.subarray(from - first, Math.min(to, end) - first);
      let whole = given;
      if (given.length < to - from) {
        whole = new Uint8Array(to - from);
        whole.set(given);
      }
      this.#commands.write(heap.buffer, from, whole);
    }
    if (from > first) this.#mergeWord(memory, from - 4 - start, first, bytes, Math.min(from, end));
    if (end > to && to >= from) this.#mergeWord(memory, to - start, first, bytes, end);
  }

  /** Writes the bytes up to `end` that fall into the word at `wordOffset`, and leaves its others as they are. */
  #mergeWord(memory: Memory, wordOffset: number, first: number, bytes: Uint8Array, end: number): void {
    const word = (memory as HeapMemory).start + wordOffset;
    let mask = 0;
    let bits = 0;
    for (let byte = Math.max(word, first); byte < Math.min(word + 4, end); byte++) {
      mask |= 0xff << (8 * (byte - word));
      bits |= bytes[byte - first]! << (8 * (byte - word));
    }
    const target = { memory, byteOffset: wordOffset, length: 1 };
    this.dispatch(MERGE_WORD, [target], { mask: mask >>> 0, bits: bits >>> 0 }, 1);
  }

  async read(memory: Memory, byteOffset: number, bytes: number): Promise<Uint8Array> {
    this.#faults.checkAlive();
    const { heap, start } = memory as HeapMemory;
    const first = start + byteOffset;
    const from = Math.floor(first / 4) * 4;
    const to = Math.ceil((first + bytes) / 4) * 4;
    if (bytes === 0) {
      await this.sync();
      return new Uint8Array(0);
    }
    const result = new Uint8Array(bytes);
    const pieces = this.#staging.pieces(from, to).map(({ start, length }) => {
      const buffer = this.#staging.take(length);
      this.#commands.copy(heap.buffer, start, buffer, 0, length);
      return { buffer, start, length };
    });
    this.#commands.submit();
    for (const { buffer, start, length } of pieces) {
      try {
        await buffer.mapAsync(1, 0, length); // GPUMapMode.READ
      } catch (cause) {
        await this.#faults.raise();
        throw new OptError("DEVICE_ERROR", "webgpu", `cannot read: ${cause}.`, "", { cause });
      }
      const skip = start - first;
      const whole = new Uint8Array(buffer.getMappedRange(0, length));
      result.set(whole.subarray(Math.max(0, -skip), bytes - skip), Math.max(0, skip));
      buffer.unmap();
      this.#staging.give(buffer);
    }
    await this.#faults.raise();
    return result;
  }

  load(): Promise<void> {
    return KERNELS.load();
  }

  kernel<K extends Kind>(spec: Spec<K>): Kernel<K> {
    this.#faults.checkAlive();
    const source = KERNELS.of(spec.kind) as KernelSource<K, unknown>;
    return { spec, prepared: source.prepare(spec, this.target) } as WebGpuKernel<K>;
  }

  launch(launch: Launch): void {
    this.#faults.checkAlive();
    try {
      KERNELS.of(launch.kind).launch(launch, (launch.kernel as WebGpuKernel).prepared, this);
    } finally {
      for (const memory of this.#scratch) this.free(memory);
      this.#scratch.length = 0;
    }
  }

  /** @internal */
  dispatch(shader: Shader, slices: readonly Slice[], params: Readonly<Record<string, number>>, groups: number): void {
    if (groups === 0) return;
    const facts = this.#factsOf(shader);
    const limits = { binding: this.largestBinding, bindings: this.#bindings };
    const { ranges, rangeOf, byteOf } = findBindings(shader.name, slices, facts.units, limits);
    const pipeline = this.#pipelines.pipeline(shader, rangeOf, ranges.length);
    const { offset, words, floats } = this.#commands.reserve(facts.uniformBytes);
    let at = offset / 4;
    for (let k = 0; k < slices.length; k++) {
      if (facts.passesStart[k]) words[at++] = byteOf[k]! / facts.units[k]!;
    }
    for (const [name, type] of facts.params) {
      if (type === "f32") floats[at++] = params[name]!;
      else words[at++] = params[name]!;
    }
    const group = this.#pipelines.group(ranges, facts.uniformBytes);
    this.#commands.dispatch(shader.name, pipeline, group, offset, gridOf(groups, this.#largestGrid));
  }

  starts(where: string, slices: readonly Slice[], units: readonly number[]): number[] {
    const limits = { binding: this.largestBinding, bindings: this.#bindings };
    return findBindings(where, slices, units, limits).byteOf.map((byte, k) => byte / units[k]!);
  }

  #factsOf(shader: Shader): ShaderFacts {
    let facts = this.#facts.get(shader);
    if (facts === undefined) {
      const views = Object.values(shader.slices);
      const bytes = memberNames(shader).length * 4;
      facts = {
        units: views.map(unitOf),
        passesStart: views.map(passesStart),
        params: Object.entries(shader.params),
        uniformBytes: Math.max(1, Math.ceil(bytes / UNIFORM_GRAIN)) * UNIFORM_GRAIN,
      };
      this.#facts.set(shader, facts);
    }
    return facts;
  }

  table(owner: object, words: Uint32Array): Slice {
    return this.#tables.find(owner, words);
  }

  scratch(length: number): Slice {
    const memory = this.#heaps.allocate(length * 4);
    this.#scratch.push(memory);
    return { memory, byteOffset: 0, length };
  }

  async sync(): Promise<void> {
    this.#faults.checkAlive();
    this.#commands.submit();
    await this.device.queue.onSubmittedWorkDone().catch(() => {}); // a lost device says so below
    await this.#faults.raise();
  }

  close(): void {
    this.#closed = true;
    this.#staging.close();
    this.#heaps.close();
    this.#commands.ring.destroy();
    this.device.destroy();
  }
}

/** A workgroup of 64 costs SwiftShader as much as 500 elements of AdamW. */
const SOFTWARE_GRAIN = 16;

/** Adapters that are known to compute on the host's processor: SwiftShader, Mesa's, Microsoft's. */
const SOFTWARE = /swiftshader|llvmpipe|lavapipe|softpipe|basic render|\bwarp\b/i;

/** Browsers that hide the adapter's name still say that it is a fallback. */
function isSoftware(info: GPUAdapterInfo | undefined): boolean {
  if (info === undefined) return false;
  const { vendor, architecture, device, description } = info;
  return info.isFallbackAdapter === true || SOFTWARE.test([vendor, architecture, device, description].join(" "));
}

/** maxComputeWorkgroupsPerDimension that every device has. */
const LARGEST_GRID = 65_535;

/** Workgroups in two dimensions, each within the limit. A few may be too many: shaders check. */
function gridOf(groups: number, largest: number): readonly [number, number] {
  const rows = Math.ceil(groups / largest);
  return [Math.ceil(groups / rows), rows];
}
