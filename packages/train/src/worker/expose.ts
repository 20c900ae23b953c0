/** The worker's side: runs a function when the page asks for it. */
import { Tensor } from "@opt/core";
import type { Callback, FitState } from "../fit/events";
import { type FromRun, listen, type SentTensor, type ToWorker, type WorkerEvent, type WorkerPort } from "./messages";

/** What the worker's function gets. */
export interface ExposedRun {
  /** Aborted when the page stops the run: pass it to `fit`. */
  readonly signal: AbortSignal;
  /** A callback that tells the page each event. Steps are left out while the page is busy, but not the last of an epoch; their losses come with the next event. */
  report(): Callback;
}

/**
 * Runs `body` in this worker whenever a page, or a program in Node, calls `start`. What it returns goes there: plain data, and tensors at
 * any depth, whose bytes are moved. What it throws goes there too.
 *
 * `fit` pauses now and then, so that the worker answers other runs while it trains: a prediction, for example.
 *
 * ```js
 * expose(async (run, { epochs }: { epochs: number }) => {
 *   await fit(model, { data, loss: crossEntropy, optimizer, epochs, callbacks: [run.report()], signal: run.signal });
 *   return model.stateDict();
 * });
 * ```
 */
export function expose<Options>(body: (run: ExposedRun, options: Options) => unknown): void {
  const port = ownPort();
  const runs = new Map<number, Run>();
  const post = (message: FromRun, transfer: ArrayBuffer[] = []) => port.postMessage(message, transfer);
  const begin = async ({ run, options, lock }: ToWorker & { opt: "start" }) => {
    const exposed = new Run((event) => post({ opt: "event", run, event }));
    runs.set(run, exposed);
    await hold(lock);
    post({ opt: "locked", run });
    try {
      const transfer: ArrayBuffer[] = [];
      const value = await packed(await body(exposed, options as Options), transfer);
      post({ opt: "result", run, value }, transfer);
    } catch (error) {
      const { message, stack, code } = error as Error & { code?: string };
      post({ opt: "error", run, error: { message: message ?? String(error), stack, code } });
    }
    runs.delete(run);
  };
  listen(port, "message", (message: ToWorker) => {
    if (message.opt === "start") void begin(message);
    else if (message.opt === "stop") runs.get(message.run)?.controller.abort();
    else if (message.opt === "taken") runs.get(message.run)?.taken();
  });
  port.postMessage({ opt: "ready" }, []);
}

function ownPort(): WorkerPort {
  const { process } = globalThis as {
    process?: { getBuiltinModule?(name: string): { parentPort: WorkerPort } | undefined };
  };
  return process?.getBuiltinModule?.("node:worker_threads")?.parentPort ?? (globalThis as unknown as WorkerPort);
}

/** Held until the worker ends, by which the page sees a worker that is gone. */
async function hold(lock: string): Promise<void> {
  if (typeof navigator !== "object" || navigator.locks === undefined) return;
  await new Promise<void>((resolve) => {
    void navigator.locks.request(lock, () => {
      resolve();
      return new Promise(() => {});
    });
  });
}

class Run implements ExposedRun {
  readonly controller = new AbortController();
  readonly signal = this.controller.signal;
  #isBusy = false; // the page has an event that it has not taken
  #told = 0;
  /** The last step, where the page had no time for it: told before the next event. */
  #late: Omit<WorkerEvent, "losses"> | undefined;

  constructor(private readonly post: (event: WorkerEvent) => void) {}

  taken(): void {
    this.#isBusy = false;
  }

  readonly report = (): Callback => ({
    onTrainBegin: (state) => {
      this.#told = state.history.losses.length;
      this.#tell("trainBegin", state);
    },
    onEpochBegin: (state) => this.#tell("epochBegin", state),
    onStepEnd: (state) => {
      this.#late = eventOf("stepEnd", state);
      if (!this.#isBusy) this.#send(this.#late, state);
    },
    onEvaluate: (state) => this.#tell("evaluate", state),
    onEpochEnd: (state) => this.#tell("epochEnd", state),
    onSave: (state) => this.#tell("save", state),
    onTrainEnd: (state) => this.#tell("trainEnd", state),
  });

  #tell(type: WorkerEvent["type"], state: FitState): void {
    if (this.#late) this.#send(this.#late, state);
    this.#send(eventOf(type, state), state);
  }

  #send(event: Omit<WorkerEvent, "losses">, { history }: FitState): void {
    const losses = history.losses.slice(this.#told);
    this.#told = history.losses.length;
    this.#late = undefined;
    this.#isBusy = true;
    this.post({ ...event, losses });
  }
}

function eventOf(type: WorkerEvent["type"], state: FitState): Omit<WorkerEvent, "losses"> {
  const { epoch, epochs, step, epochStep, stepsPerEpoch, lr, history, checkpoint } = state;
  const logs = type === "epochEnd" ? history.epochs.at(-1)! : state.logs;
  return { type, epoch, epochs, step, epochStep, stepsPerEpoch, lr, logs, checkpoint };
}

/** A copy of the tree with bytes in place of tensors. @param transfer takes their memory */
async function packed(tree: unknown, transfer: ArrayBuffer[]): Promise<unknown> {
  if (tree instanceof Tensor) {
    const bytes = (await tree.bytes()).slice();
    transfer.push(bytes.buffer);
    return { optTensor: true, dtype: tree.dtype, shape: tree.shape, bytes } satisfies SentTensor;
  }
  if (Array.isArray(tree)) return Promise.all(tree.map((each) => packed(each, transfer)));
  if (typeof tree !== "object" || tree === null || Object.getPrototypeOf(tree) !== Object.prototype) return tree;
  const entries = Object.entries(tree).map(async ([key, value]) => [key, await packed(value, transfer)] as const);
  return Object.fromEntries(await Promise.all(entries));
}
