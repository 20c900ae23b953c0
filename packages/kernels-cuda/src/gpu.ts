/** One GPU: its context, its stream, and what becomes of the driver's errors. */
import { OptError } from "@opt/core";
import { ATTRIBUTE, type Driver, EVENT_UNTIMED, isSticky, type Out, STATUS, STREAM_NON_BLOCKING } from "./driver";

/** What only a bug of ours can cause: caught here, because a GPU would answer with another's memory. */
export function bug(problem: string): OptError {
  return new OptError("INTERNAL", "cuda", problem, "Please report this: it is a bug in Opt.");
}

export class Gpu {
  readonly name: string;
  /** 90 for compute capability 9.0. */
  readonly architecture: number;
  readonly multiprocessors: number;
  readonly context: number;
  /** All launches and copies of the device, in the order of the calls. */
  readonly stream: number;
  /** For what must reach the GPU while `stream` is being recorded. */
  readonly transferStream: number;
  /** The newest CUDA that the driver serves: 13000 for 13.0. */
  readonly driverVersion: number;
  readonly #orderEvent: number;
  #lost: string | undefined;
  readonly #out = new BigUint64Array(1);
  readonly #device: number;

  /** @throws OptError DEVICE_UNAVAILABLE if there is no such GPU */
  constructor(
    readonly driver: Driver,
    readonly index: number,
  ) {
    const started = driver.cuInit(0);
    if (started !== STATUS.success)
      throw this.unavailable(`the NVIDIA driver does not start: ${driver.errorText(started)}.`);
    this.driverVersion = this.get((out) => driver.cuDriverGetVersion(out), "asking for the driver's version");
    const count = this.get((out) => driver.cuDeviceGetCount(out), "counting GPUs");
    if (index >= count) {
      throw this.unavailable(
        count === 0 ? "no NVIDIA GPU." : `there are ${count} NVIDIA GPUs, got number ${index} (they count from 0).`,
      );
    }
    this.#device = this.get((out) => driver.cuDeviceGet(out, index), "finding the GPU");
    const attribute = (number: number) =>
      this.get((out) => driver.cuDeviceGetAttribute(out, number, this.#device), "asking what the GPU is");
    this.architecture = attribute(ATTRIBUTE.computeMajor) * 10 + attribute(ATTRIBUTE.computeMinor);
    this.multiprocessors = attribute(ATTRIBUTE.multiprocessors);
    const name = new Uint8Array(128);
    this.check(driver.cuDeviceGetName(name, name.length, this.#device), "asking the GPU's name");
    this.name = Buffer.from(name.subarray(0, name.indexOf(0))).toString();
    this.context = this.get((out) => driver.cuDevicePrimaryCtxRetain(out, this.#device), "opening the GPU");
    this.check(driver.cuCtxSetCurrent(this.context), "opening the GPU");
    this.stream = this.get((out) => driver.cuStreamCreate(out, STREAM_NON_BLOCKING), "making a stream");
    this.transferStream = this.get((out) => driver.cuStreamCreate(out, STREAM_NON_BLOCKING), "making a stream");
    this.#orderEvent = this.get((out) => driver.cuEventCreate(out, EVENT_UNTIMED), "making an event");
  }

  /** What is enqueued on `later` from now on runs after what is on `earlier` already. Nobody waits. */
  order(earlier: number, later: number): void {
    this.check(this.driver.cuEventRecord(this.#orderEvent, earlier), "ordering streams");
    this.check(this.driver.cuStreamWaitEvent(later, this.#orderEvent, 0), "ordering streams");
  }

  /** Before anything is asked of the GPU: other code may have made another context current. @throws OptError DEVICE_LOST */
  use(): void {
    if (this.#lost !== undefined) throw this.#deviceLost();
    this.check(this.driver.cuCtxSetCurrent(this.context), "choosing the GPU");
  }

  /** @throws OptError OUT_OF_MEMORY, DEVICE_LOST if nothing works any more, DEVICE_ERROR; each with the driver's words */
  check(status: number, doing: string): void {
    if (status === STATUS.success) return;
    const text = this.driver.errorText(status);
    if (isSticky(status)) {
      this.#lost = `${doing} failed (${text})`;
      throw this.#deviceLost();
    }
    const code = status === STATUS.outOfMemory ? "OUT_OF_MEMORY" : "DEVICE_ERROR";
    throw new OptError(code, this.where, `${doing} failed: ${text}.`, "See the driver's words.");
  }

  /** A call's result. */
  get(call: (out: Out) => number, doing: string): number {
    this.#out[0] = 0n;
    this.check(call(this.#out), doing);
    return Number(this.#out[0]);
  }

  memory(): { free: number; total: number } {
    const total = new BigUint64Array(1);
    const free = this.get((out) => this.driver.cuMemGetInfo_v2(out, total), "asking for free memory");
    return { free, total: Number(total[0]) };
  }

  close(): void {
    // A lost context answers no call; the driver frees all of it with its last user.
    this.driver.cuCtxSetCurrent(this.context);
    this.driver.cuEventDestroy_v2(this.#orderEvent);
    this.driver.cuStreamDestroy_v2(this.stream);
    this.driver.cuStreamDestroy_v2(this.transferStream);
    this.driver.cuDevicePrimaryCtxRelease_v2(this.#device);
  }

  /** Nothing that is asked of it will be answered. */
  get isLost(): boolean {
    return this.#lost !== undefined;
  }

  get where(): string {
    return this.index === 0 ? "cuda" : `cuda:${this.index}`;
  }

  #deviceLost(): OptError {
    const advice = "Nothing on this device can be saved: start the process again from a checkpoint.";
    return new OptError("DEVICE_LOST", this.where, `the GPU stopped working when ${this.#lost}.`, advice);
  }

  unavailable(problem: string, advice = ""): OptError {
    const serves = 'The devices "cpu" and "wasm" serve without it.';
    return new OptError("DEVICE_UNAVAILABLE", this.where, problem, advice === "" ? serves : `${advice} ${serves}`);
  }
}
