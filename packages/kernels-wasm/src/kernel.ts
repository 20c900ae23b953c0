/** What a kernel is here: a module emitted for a spec, and how a launch becomes calls of its exports. */
import type { ComputeDType, Kind, Launch, Scalar, Slice, Spec } from "@opt/core/backend";
import type { ModuleBuilder } from "./assembler";

/** The machine that modules are emitted for. */
export interface Target {
  /** The memory is shared: to be passed on to `ModuleBuilder`. */
  readonly shared: boolean;
  /** Relaxed SIMD is understood. Its multiply-add may still round twice. */
  readonly relaxedSimd: boolean;
  /** `relaxedMadd` rounds once. */
  readonly fused: { readonly f32: boolean; readonly f64: boolean };
}

/** Items 0 to `range`, which the threads share out in parts that start at multiples of `grain`. */
export interface Split {
  readonly range: number;
  /** Default 1. */
  readonly grain?: number;
  /** Roughly how many elements are read by the whole call, or what takes as long: small calls stay on one thread. */
  readonly work: number;
}

/** What a launcher may do. Everything it sets up lasts until its launch returns. */
export interface Execution {
  /** Where a slice begins: an i32 argument. Addresses above 2^31 turn negative in WASM: compare them unsigned. */
  address(slice: Slice): number;
  /** What a scalar is now. */
  scalar(scalar: Scalar, dtype: ComputeDType): number;
  /** Uninitialised memory, aligned to 64 bytes. */
  scratch(bytes: number): number;
  /** Address of i32 words in memory: pointer tables, shapes. */
  table(words: ArrayLike<number>): number;
  /**
   * Calls the export `entry(start: i32, end: i32, ...args)` on every part of the split and waits for all of them.
   * Parts depend on the number of threads: what an item computes must not depend on its part. Of slices the export gets the addresses.
   */
  run(entry: string, split: Split, ...args: readonly (number | Slice)[]): void;
}

/** One file per kernel exports one of these. A module may import the functions of `host.ts`; it then runs on one thread. */
export interface KernelSource<K extends Kind> {
  emit(spec: Spec<K>, target: Target): ModuleBuilder;
  launch(launch: Launch<K>, execution: Execution): void;
}

/** What an export gets of the arguments of `Execution.run`. */
export function numbersOf(memory: { address(slice: Slice): number }, args: readonly (number | Slice)[]): number[] {
  return args.map((arg) => (typeof arg === "number" ? arg : memory.address(arg)));
}
