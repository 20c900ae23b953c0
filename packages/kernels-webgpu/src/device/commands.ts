/** Collects commands and submits them together: when somebody reads, when much is queued, or at the end of the current task. */
import { OptError } from "@opt/core";
import type { Faults } from "./faults";

/** Slots of the uniform ring are multiples of this: WebGPU's largest minUniformBufferOffsetAlignment. */
export const UNIFORM_GRAIN = 256;

const RING_BYTES = 2 ** 18;

const LARGEST_QUEUED_WRITE = 2 ** 15;

/** After so many dispatches the device gets its work, so that it computes while more is being recorded. */
const DISPATCHES_PER_SUBMIT = 512;

export interface Counters {
  dispatches: number;
  submits: number;
}

export class Commands {
  readonly counters: Counters = { dispatches: 0, submits: 0 };
  /** Every launch's parameters, and small writes, since the last submit. Reused by the next batch: the queue keeps the order. */
  readonly ring: GPUBuffer;
  readonly #words = new Uint32Array(RING_BYTES / 4);
  readonly #floats = new Float32Array(this.#words.buffer);
  readonly #bytes = new Uint8Array(this.#words.buffer);
  #ringEnd = 0;
  #encoder: GPUCommandEncoder | undefined;
  #pass: GPUComputePassEncoder | undefined;
  #dispatches = 0;
  #pipeline: GPUComputePipeline | undefined;
  #lastNames: string[] = [];
  #scheduled = false;

  constructor(
    private readonly device: GPUDevice,
    private readonly faults: Faults,
  ) {
    const usage = 0x40 | 0x08 | 0x04; // UNIFORM | COPY_DST | COPY_SRC
    this.ring = device.createBuffer({ label: "uniform ring", size: RING_BYTES, usage });
  }

  /** Room for a launch's parameters. May submit what is queued, so call it before anything of the launch is encoded. */
  reserve(bytes: number): { offset: number; words: Uint32Array; floats: Float32Array } {
    if (this.#ringEnd + bytes > RING_BYTES) this.submit();
    const offset = this.#ringEnd;
    this.#ringEnd += bytes;
    return { offset, words: this.#words, floats: this.#floats };
  }

  dispatch(
    name: string,
    pipeline: GPUComputePipeline,
    group: GPUBindGroup,
    offset: number,
    workgroups: readonly [number, number],
  ): void {
    this.#pass ??= this.#encode().beginComputePass();
    if (this.#pipeline !== pipeline) this.#pass.setPipeline(pipeline);
    this.#pipeline = pipeline;
    this.#pass.setBindGroup(0, group, [offset]);
    this.#pass.dispatchWorkgroups(workgroups[0], workgroups[1]);
    this.#lastNames[this.#dispatches % 4] = name;
    this.counters.dispatches++;
    this.#dispatches++;
    if (this.#dispatches >= DISPATCHES_PER_SUBMIT) this.submit();
  }

  copy(source: GPUBuffer, sourceOffset: number, target: GPUBuffer, targetOffset: number, bytes: number): void {
    this.#endPass();
    this.#encode().copyBufferToBuffer(source, sourceOffset, target, targetOffset, bytes);
  }

  /** Writes whole words, after what is queued. Small writes travel with the queue instead of cutting it in two. */
  write(target: GPUBuffer, targetOffset: number, bytes: Uint8Array): void {
    if (this.#encoder === undefined || bytes.length > LARGEST_QUEUED_WRITE) {
      this.submit();
      this.device.queue.writeBuffer(target, targetOffset, bytes as Uint8Array<ArrayBuffer>);
      return;
    }
    const { offset } = this.reserve(Math.ceil(bytes.length / UNIFORM_GRAIN) * UNIFORM_GRAIN);
    this.#bytes.set(bytes, offset);
    this.copy(this.ring, offset, target, targetOffset, bytes.length);
  }

  submit(): void {
    if (this.#encoder === undefined) return;
    this.#endPass();
    const encoder = this.#encoder;
    this.#encoder = undefined;
    const names = [...new Set(this.#lastNames)].join(", ");
    const run = () => {
      if (this.#ringEnd > 0) this.device.queue.writeBuffer(this.ring, 0, this.#words, 0, this.#ringEnd / 4);
      this.device.queue.submit([encoder.finish()]);
    };
    const toError = (message: string) =>
      new OptError("DEVICE_ERROR", `webgpu ${names || "copy"}`, `the device rejected a launch: ${message}`);
    this.faults.watch("validation", run, toError);
    this.counters.submits++;
    this.#ringEnd = 0;
    this.#dispatches = 0;
    this.#lastNames = [];
  }

  #encode(): GPUCommandEncoder {
    if (this.#encoder === undefined) {
      this.#encoder = this.device.createCommandEncoder();
      this.#schedule();
    }
    return this.#encoder;
  }

  #endPass(): void {
    this.#pass?.end();
    this.#pass = undefined;
    this.#pipeline = undefined;
  }

  /** The device starts when the program next gives way, without being asked. */
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      if (this.faults.lost === undefined) this.submit();
    });
  }
}
