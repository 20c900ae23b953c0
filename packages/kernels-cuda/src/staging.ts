/** Host memory that the GPU copies from and to by itself ("pinned"): what lets writes and reads run beside the event loop. */
import { EVENT_BLOCKING, EVENT_UNTIMED, STATUS } from "./driver";
import type { Gpu } from "./gpu";

const SMALLEST = 2 ** 12;
const LARGEST = 2 ** 25;
/** Blocks that a large read goes through in turn: while one arrives, those before are copied out. */
const BLOCKS_OF_READ = 4;
/** Kept for later; what many reads at once take beyond is given back after them. */
const MAX_KEPT_BYTES = 2 ** 28;
const SMALL = 2 ** 20;

interface Block {
  readonly address: number;
  readonly bytes: number;
  /** Recorded after the block's last use. */
  readonly event: number;
}

/** A read under way. */
export interface Download {
  /** Passed when the bytes have arrived. */
  readonly event: number;
  /** Takes the bytes out, once `event` has passed. */
  finish(): Uint8Array<ArrayBuffer>;
  /** Gives the blocks back without looking at them. */
  abandon(): void;
}

export class Staging {
  readonly #idle = new Map<number, Block[]>();
  /** In the order of use on a stream. */
  #busy: Block[] = [];
  #reserved = 0;

  constructor(private readonly gpu: Gpu) {}

  get reservedBytes(): number {
    return this.#reserved;
  }

  /** Copies host bytes in; the caller may change them afterwards. */
  upload(address: number, bytes: Uint8Array, stream: number): void {
    const { driver } = this.gpu;
    for (let start = 0; start < bytes.length; start += LARGEST) {
      const piece = bytes.subarray(start, start + LARGEST);
      const block = this.#acquire(piece.length);
      driver.store(block.address, piece);
      this.gpu.check(
        driver.cuMemcpyHtoDAsync_v2(address + start, block.address, piece.length, stream),
        "writing to the GPU",
      );
      this.gpu.check(driver.cuEventRecord(block.event, stream), "writing to the GPU");
      this.#busy.push(block);
    }
  }

  /** Enqueues copies out. Later work on the stream may change the memory. */
  download(address: number, bytes: number, stream: number): Download {
    return bytes > LARGEST ? this.#pipeline(address, bytes, stream) : this.#single(address, bytes, stream);
  }

  #single(address: number, bytes: number, stream: number): Download {
    const { driver } = this.gpu;
    const block = this.#acquire(bytes);
    if (bytes > 0) {
      this.gpu.check(driver.cuMemcpyDtoHAsync_v2(block.address, address, bytes, stream), "reading from the GPU");
    }
    this.gpu.check(driver.cuEventRecord(block.event, stream), "reading from the GPU");
    return {
      event: block.event,
      abandon: () => this.#giveBack(block),
      finish: () => {
        const result = new Uint8Array(bytes);
        driver.load(result, block.address);
        this.#giveBack(block);
        return result;
      },
    };
  }

  /** Each block arrives on `stream` and is copied out on the transfer stream, before it is filled again. */
  #pipeline(address: number, bytes: number, stream: number): Download {
    const { driver, transferStream } = this.gpu;
    const result = new Uint8Array(bytes);
    const blocks = Array.from({ length: Math.min(BLOCKS_OF_READ, Math.ceil(bytes / LARGEST)) }, () =>
      this.#acquire(LARGEST),
    );
    let last = blocks[0]!;
    for (let start = 0; start < bytes; start += LARGEST) {
      const piece = start / LARGEST;
      const length = Math.min(LARGEST, bytes - start);
      last = blocks[piece % blocks.length]!;
      const statuses = [
        () => (piece < blocks.length ? STATUS.success : driver.cuStreamWaitEvent(stream, last.event, 0)),
        () => driver.cuMemcpyDtoHAsync_v2(last.address, address + start, length, stream),
        () => driver.cuEventRecord(last.event, stream),
        () => driver.cuStreamWaitEvent(transferStream, last.event, 0),
        () => driver.copyInOrder(transferStream, result.subarray(start, start + length), last.address),
        () => driver.cuEventRecord(last.event, transferStream),
      ];
      for (const status of statuses) this.gpu.check(status(), "reading from the GPU");
    }
    const abandon = () => {
      for (const block of blocks.splice(0)) this.#giveBack(block);
    };
    return {
      event: last.event,
      abandon,
      finish: () => {
        abandon();
        return result;
      },
    };
  }

  /** An event after all work that is enqueued, and its block. */
  mark(stream: number): Download {
    return this.download(0, 0, stream);
  }

  clear(): void {
    for (const block of [...this.#busy, ...[...this.#idle.values()].flat()]) this.#destroy(block);
    this.#busy = [];
    this.#idle.clear();
  }

  #acquire(bytes: number): Block {
    const size = Math.max(SMALLEST, 2 ** Math.ceil(Math.log2(Math.max(bytes, 1))));
    this.#collect();
    const block = this.#idle.get(size)?.pop();
    if (block !== undefined) return block;
    // Small ones do not wait because large ones have taken the room.
    const most = size < SMALL ? 2 * MAX_KEPT_BYTES : MAX_KEPT_BYTES;
    if (this.#reserved + size > most && this.#waitForOne(size)) return this.#idle.get(size)!.pop()!;
    const { driver } = this.gpu;
    const address = this.gpu.get(
      (out) => driver.cuMemAllocHost_v2(out, size),
      `allocating ${size} bytes of pinned memory`,
    );
    const event = this.gpu.get((out) => driver.cuEventCreate(out, EVENT_BLOCKING | EVENT_UNTIMED), "making an event");
    this.#reserved += size;
    return { address, bytes: size, event };
  }

  /** Moves the blocks that the GPU is done with to the idle ones. */
  #collect(): void {
    let done = 0;
    for (; done < this.#busy.length; done++) {
      const status = this.gpu.driver.cuEventQuery(this.#busy[done]!.event);
      if (status === STATUS.notReady) break;
      this.gpu.check(status, "copying between host and GPU");
      this.#giveBack(this.#busy[done]!);
    }
    if (done > 0) this.#busy.splice(0, done);
  }

  /** Waits until a block of this size is idle; false if none is on its way. */
  #waitForOne(size: number): boolean {
    const last = this.#busy.findIndex(({ bytes }) => bytes === size);
    if (last < 0) return false;
    this.gpu.check(this.gpu.driver.cuEventSynchronize(this.#busy[last]!.event), "waiting for copies");
    this.#collect();
    return (this.#idle.get(size)?.length ?? 0) > 0;
  }

  #giveBack(block: Block): void {
    if (this.#reserved > MAX_KEPT_BYTES) {
      this.#destroy(block);
      return;
    }
    const list = this.#idle.get(block.bytes);
    if (list === undefined) this.#idle.set(block.bytes, [block]);
    else list.push(block);
  }

  #destroy({ address, event, bytes }: Block): void {
    this.gpu.driver.cuMemFreeHost(address);
    this.gpu.driver.cuEventDestroy_v2(event);
    this.#reserved -= bytes;
  }
}
