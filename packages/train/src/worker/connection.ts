/** The page's end of a worker: hands messages to the runs that they belong to. */
import { type FromRun, type FromWorker, listen, type ToWorker, type WorkerPort } from "./messages";

/** A run that waits for messages. */
export interface Receiver {
  receive(message: FromRun): void;
  /** The worker has ended. */
  died(why: string): void;
}

const connections = new WeakMap<WorkerPort, Connection>();
let runs = 0;

export class Connection {
  readonly #receivers = new Map<number, Receiver>();
  readonly #ready: Promise<void>;

  static to(worker: WorkerPort): Connection {
    const known = connections.get(worker) ?? new Connection(worker);
    connections.set(worker, known);
    return known;
  }

  private constructor(private readonly worker: WorkerPort) {
    this.#ready = new Promise((resolve) => {
      listen(worker, "message", (message: FromWorker) => {
        if (message.opt === "ready") resolve();
        else this.#receivers.get(message.run)?.receive(message);
      });
    });
    listen(worker, "error", (error: { message?: string; preventDefault?(): void }) => {
      error.preventDefault?.();
      this.#died(`it failed: ${error.message ?? "no reason is known"}`);
    });
    listen(worker, "messageerror", () => this.#died("it sent what cannot be read"));
    if ("on" in worker) listen(worker, "exit", (code: number) => this.#died(`it has ended with code ${code}`));
  }

  /** Messages leave when the worker listens. */
  post(message: ToWorker): void {
    void this.#ready.then(() => this.worker.postMessage(message, []));
  }

  /** Returns the run's number. */
  begin(receiver: Receiver, options: unknown, lock: string): number {
    const run = runs++;
    this.#receivers.set(run, receiver);
    this.worker.ref?.();
    this.post({ opt: "start", run, options, lock });
    return run;
  }

  /** A worker without a run does not keep a program in Node alive. */
  end(run: number): void {
    this.#receivers.delete(run);
    if (this.#receivers.size === 0) this.worker.unref?.();
  }

  #died(why: string): void {
    for (const receiver of [...this.#receivers.values()]) receiver.died(why);
  }
}
