/** What the launches of all kinds stand on: one device's memory, kernels and stream, and the step that is being recorded. */
import type { Memory, Slice } from "@opt/core/backend";
import { ArgumentWriter } from "./arguments";
import type { Blas } from "./blas";
import { ChunkTables } from "./chunk-table";
import type { Gpu } from "./gpu";
import type { Kernels } from "./kernels";
import { Allocator, type CudaMemory } from "./memory";
import type { Recording } from "./recording";
import { Staging } from "./staging";

/** THREADS of native/cuda/kernels/elements.cuh. */
export const THREADS = 256;
const BLOCKS_PER_MULTIPROCESSOR = 32;

export class Launcher {
  readonly allocator: Allocator;
  readonly staging: Staging;
  readonly tables: ChunkTables;
  readonly arguments: ArgumentWriter;
  recording: Recording | undefined;

  constructor(
    readonly gpu: Gpu,
    readonly kernels: Kernels,
    readonly blas: Blas | undefined,
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
  run(entry: number, blocks: number): void {
    const { gpu, arguments: args } = this;
    gpu.check(gpu.driver.launch(entry, blocks, THREADS, gpu.stream, args.bytes, args.length), "launching a kernel");
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

  /** A table must be there before the launch; what is being recorded copies nothing from host memory, which will have changed at replay. */
  get tableStream(): number {
    return this.recording === undefined ? this.gpu.stream : this.gpu.transferStream;
  }

  /** Keeps an eye on memory that a recorded step uses. */
  noteMemory(slices: readonly Slice[]): void {
    for (const { memory } of slices) this.recording?.memories.add(memory as Memory as CudaMemory);
  }

  close(): void {
    this.tables.clear();
    this.staging.clear();
    this.allocator.clear();
    this.blas?.close();
    this.kernels.close();
  }
}
