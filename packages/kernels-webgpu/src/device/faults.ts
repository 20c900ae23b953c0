/** Errors that the device reports later than the call that caused them: kept until somebody awaits. */
import { OptError } from "@opt/core";

export class Faults {
  #first: OptError | undefined;
  #lost: OptError | undefined;
  readonly #pending = new Set<Promise<void>>();

  constructor(private readonly device: GPUDevice) {}

  /** Set once the device is gone. */
  get lost(): OptError | undefined {
    return this.#lost;
  }

  lose(message: string): void {
    this.#lost ??= new OptError(
      "DEVICE_LOST",
      "webgpu",
      `the device went away: ${message || "it said nothing"}.`,
      `Its tensors are gone: await init("webgpu").`,
    );
  }

  /** @throws OptError DEVICE_LOST */
  checkAlive(): void {
    if (this.#lost !== undefined) throw this.#lost;
  }

  /** Runs `body`; an error of the given kind that it causes is raised at the next await. */
  watch<Result>(filter: GPUErrorFilter, body: () => Result, toError: (message: string) => OptError): Result {
    this.device.pushErrorScope(filter);
    try {
      return body();
    } finally {
      const settled = this.device.popErrorScope().then(
        (error) => {
          if (error !== null) this.#first ??= toError(error.message);
        },
        () => {}, // the device was lost: its own promise says so
      );
      const pending: Promise<void> = settled.finally(() => this.#pending.delete(pending));
      this.#pending.add(pending);
    }
  }

  /** Waits for what was watched so far. @throws OptError the first fault since the last time, or DEVICE_LOST */
  async raise(): Promise<void> {
    await Promise.all(this.#pending);
    this.checkAlive();
    const fault = this.#first;
    this.#first = undefined;
    if (fault !== undefined) throw fault;
  }
}
