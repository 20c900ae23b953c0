/** What the launches of all kinds stand on: one device's memory, kernels and stream, and the step that is being recorded. */
import type { Slice } from "@opt/core/backend";
import { ArgumentWriter } from "./arguments";
import { type ChunkTable, ChunkTables, type Column } from "./chunk-table";
import type { Gpu } from "./gpu";
import type { Kernels } from "./kernels";
import { Allocator, type CudaMemory } from "./memory";
import { Staging } from "./staging";

/** THREADS of native/cuda/kernels/elements.cuh. */
export const THREADS = 256;
const BLOCKS_PER_MULTIPROCESSOR = 32;

/** Threads of a block that works on one row: a power of two, as native/cuda/kernels/block.cuh asks. */
export function rowThreads(length: number): number {
  return Math.min(Math.max(2 ** Math.ceil(Math.log2(Math.max(length, 1))), 32), THREADS);
}

/** The step that is being recorded: it keeps what its launches need for as long as it can be replayed. */
export interface OpenCapture {
  own(memory: CudaMemory): CudaMemory;
  /** Where the scalars of the launch at hand lie. */
  readonly scalarAddress: number;
}

export class Launcher {
  readonly allocator: Allocator;
  readonly staging: Staging;
  readonly tables: ChunkTables;
  readonly arguments: ArgumentWriter;
  capture: OpenCapture | undefined;

  constructor(
    readonly gpu: Gpu,
    readonly kernels: Kernels,
  ) {
    this.allocator = new Allocator(gpu);
    this.staging = new Staging(gpu);
    this.tables = new ChunkTables(gpu, this.allocator, this.staging);
    this.arguments = new ArgumentWriter(this.allocator);
  }

  /** Blocks for so many elements, or rows with a block each: no more than keep the GPU busy, for kernels stride over the rest. */
  blocks(elements: number, elementsPerBlock = THREADS): number {
    const most = this.gpu.multiprocessors * BLOCKS_PER_MULTIPROCESSOR;
    return Math.max(1, Math.min(Math.ceil(elements / elementsPerBlock), most));
  }

  /** Enqueues a kernel on the arguments that are written. */
  run(entry: number, blocks: number, threads = THREADS): void {
    const { gpu, arguments: args } = this;
    gpu.check(gpu.driver.launch(entry, blocks, threads, gpu.stream, args.bytes, args.length), "launching a kernel");
  }

  /** Memory for one launch; given back at once, because what comes later on the stream runs later. */
  withScratch(bytes: number, body: (address: number) => void): void {
    const memory = this.allocator.allocate(bytes);
    try {
      body(memory.address);
    } finally {
      this.allocator.free(memory);
    }
  }

  /**
   * The table of a list of tensors. A recorded step has tables of its own, which reach the GPU while it is recorded:
   * its graph copies nothing from host memory, which will have changed at replay.
   */
  table(tensors: readonly (readonly Slice[])[], dtypes: readonly Column[], chunk?: number): ChunkTable {
    const { capture, gpu } = this;
    if (capture === undefined) return this.tables.of(tensors, dtypes, gpu.stream, chunk);
    const table = this.tables.fresh(tensors, dtypes, gpu.transferStream, chunk);
    capture.own(table.memory);
    return table;
  }

  /** Gives back what can be: a lost context frees all of it by itself. */
  close(): void {
    if (this.gpu.isLost) return;
    this.gpu.use();
    this.tables.clear();
    this.staging.clear();
    this.allocator.clear();
    this.kernels.close();
  }
}
