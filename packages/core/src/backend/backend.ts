/** The contract between core and the devices: memory, `kernel(spec)` and `launch`. */
import type { Rule } from "../rule/rule";
import type { MapDType, TypedArray } from "../values/dtype";
import type { HostKernels } from "./host-kernels";
import type { Memory, Scalar } from "./memory";
import type { FusedKind, Kernel, Kind, Launch, Spec } from "./spec";

/** Where memory is now. */
export interface Place {
  readonly memory: Memory;
  /** Added to the offsets of slices. */
  readonly byteOffset: number;
}

/** Launches that a device has prepared to run in one go. */
export interface PreparedLaunches {
  /** `scalars` replaces those of the launch at its index; `places` are of the memories that were left open: the same list means the same places. */
  run(scalars: ReadonlyMap<number, readonly Scalar[]>, places: readonly Place[]): void;
  dispose(): void;
}

export interface Backend {
  readonly name: string;
  /** The dtypes it computes in: f32 for all kernels, and f64, or else i32 for those whose spec has a `MapDType`. Storage dtypes travel through `copy`. */
  readonly dtypes: readonly MapDType[];
  /** Rules give the interpreter's bits. */
  readonly exact: boolean;
  /** All kernels of float32 give the js device's bits. */
  readonly portable?: boolean;
  /** Software imitates a GPU: slower than the host's own devices. `init` takes it by name alone. */
  readonly software?: boolean;
  /** Rules may have packed buffers (`PackedDType`). */
  readonly packs?: boolean;
  /** Rules may use stochastic rounding for their first buffer (`RandomDType`). */
  readonly draws?: boolean;
  /** The fused kernels that it has: of an op with its gradient, both. */
  readonly fuses?: readonly FusedKind[];
  /** Products take epilogues and sums. */
  readonly epilogues?: boolean;
  /** True for rules that it launches with `sums`. */
  sumsRule?(rule: Rule): boolean;
  /** Products read the windows of images where they lie; with "both", what is multiplied with those of all images, too. */
  readonly windows?: "right" | "both";
  /** Memory is the host's own: `readSync` copies, and waits for nothing. */
  readonly sharesMemory?: boolean;
  /** Faster ones than core's own. */
  readonly hostKernels?: HostKernels;
  /** The device went away: every call throws DEVICE_LOST, and the next `init` opens a new one. */
  readonly lost?: boolean;

  /** A new object each time, also of bytes that were freed: compiled functions tell memory by it. Contents are undefined. @throws OptError OUT_OF_MEMORY naming the request. */
  allocate(bytes: number): Memory;
  /**
   * The same, but it takes no room: before it is used, core assigns what `allocate` gives to it. With it compiled functions plan their
   * memory before their first launch.
   */
  reserve?(bytes: number): Memory;
  /** Launches already enqueued may still use it. */
  free(memory: Memory): void;
  /** Memory over the caller's own array, without a copy, on devices that share the host's memory. */
  wrap?(array: TypedArray): Memory;

  /** Copies host bytes in, ordered with launches. The caller may change `bytes` afterwards. */
  write(memory: Memory, byteOffset: number, bytes: Uint8Array): void;
  /** Waits for the launches that are enqueued, then copies out. */
  read(memory: Memory, byteOffset: number, bytes: number): Promise<Uint8Array>;
  /** The same without waiting for the event loop; absent where the device cannot. */
  readSync?(memory: Memory, byteOffset: number, bytes: number): Uint8Array;
  /** The same into memory of the caller's, where that saves a copy. */
  readInto?(memory: Memory, byteOffset: number, bytes: Uint8Array): void;
  /** The bytes themselves, not a copy, if they are in the host's memory until they are freed. */
  hostView?(memory: Memory, byteOffset: number, bytes: number): Uint8Array;

  /** Loads the kernels of ops that were imported since it opened: each `init` calls it. */
  load?(): Promise<void>;
  /** Compiles. Core calls it once per `specKey`. @throws OptError UNSUPPORTED if the device has no such kernel. */
  kernel<K extends Kind>(spec: Spec<K>): Kernel<K>;
  /** Enqueues. Core has checked shapes, lengths and dtypes; empty launches (no elements) may occur. */
  launch(launch: Launch): void;
  /**
   * Prepares launches to be run many times, each time in one go (a CUDA graph, one native call). `open` memory is another one in each
   * run. Without it core launches them one by one.
   */
  prepare?(launches: readonly Launch[], open: readonly Memory[]): PreparedLaunches;
  /** All launches so far are done. */
  sync(): Promise<void>;
  /** Frees everything. No call follows. */
  close(): void;
}

/** What a kernels package registers. */
export interface BackendRegistration {
  readonly name: string;
  /** `init()` without a name tries the highest first. js 0, wasm 10, cpu 20, webgpu 30, cuda 40. */
  readonly rank: number;
  /** There may be several, told apart by a number: "cuda:1". */
  readonly several?: boolean;
  /**
   * Opens the device; `index` is the number after the colon ("cuda:1").
   * @throws OptError DEVICE_UNAVAILABLE saying what is missing and what serves instead.
   */
  load(index: number): Promise<Backend>;
}
