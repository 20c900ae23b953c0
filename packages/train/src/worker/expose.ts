/** The worker's side: runs a function when the page asks for it. */
import { Tensor } from "@opt/core";
import type { Callback, FitState } from "../fit/events";
import { mapTree } from "../tree";
import {
  type FromRun,
  listen,
  type OpeningMessage,
  type SentTensor,
  type ToRun,
  type WorkerEvent,
  type WorkerPort,
} from "./messages";

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
  const worker = ownPort();
  const begin = async ({ port, options, lock }: OpeningMessage & { opt: "start" }) => {
    const post = (message: FromRun, transfer: ArrayBuffer[] = []) => port.postMessage(message, transfer);
    const run = new Run((event) => post({ type: "event", event }));
    port.onmessage = ({ data }: { data: ToRun }) => {
      if (data === "stop") run.controller.abort();
      else run.isBusy = false;
    };
    await hold(lock);
    post({ type: "locked" });
    try {
      const { value, tensors } = await packed(await body(run, options as Options));
      post(
        { type: "result", value, tensors },
        [...tensors.values()].map(({ bytes }) => bytes.buffer),
      );
    } catch (error) {
      const { message, stack, code } = error as Error & { code?: string };
      post({ type: "error", message: message ?? String(error), stack, code });
    }
  };
  const ready = () => worker.postMessage({ opt: "ready" } satisfies OpeningMessage, []);
  listen(worker, "message", (message: OpeningMessage | undefined) => {
    if (message?.opt === "ask") ready();
    if (message?.opt === "start") void begin(message);
  });
  ready();
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
  /** The page has an event that it has not taken. */
  isBusy = false;
  #told = 0;
  /** The last step, where the page had no time for it: told before the next event. */
  #late: Omit<WorkerEvent, "losses"> | undefined;

  constructor(private readonly post: (event: WorkerEvent) => void) {}

  readonly report = (): Callback => {
    const tell = (type: WorkerEvent["type"]) => (state: FitState) => {
      if (this.#late) this.#send(this.#late, state);
      this.#send(eventOf(type, state), state);
    };
    const begin = tell("trainBegin");
    return {
      onTrainBegin: (state) => {
        this.#told = state.history.losses.length;
        begin(state);
      },
      onEpochBegin: tell("epochBegin"),
      onStepEnd: (state) => {
        this.#late = eventOf("stepEnd", state);
        if (!this.isBusy) this.#send(this.#late, state);
      },
      onEvaluate: tell("evaluate"),
      onEpochEnd: tell("epochEnd"),
      onSave: tell("save"),
      onTrainEnd: tell("trainEnd"),
    };
  };

  #send(event: Omit<WorkerEvent, "losses">, { history }: FitState): void {
    const losses = history.losses.slice(this.#told);
    this.#told = history.losses.length;
    this.#late = undefined;
    this.isBusy = true;
    this.post({ ...event, losses });
  }
}

function eventOf(type: WorkerEvent["type"], state: FitState): Omit<WorkerEvent, "losses"> {
  const { epoch, epochs, step, epochStep, stepsPerEpoch, lr, history, checkpoint } = state;
  const logs = type === "epochEnd" ? history.epochs.at(-1)! : state.logs;
  return { type, epoch, epochs, step, epochStep, stepsPerEpoch, lr, logs, checkpoint };
}

/** The tree without its tensors, and their bytes by path. */
async function packed(tree: unknown): Promise<{ value: unknown; tensors: Map<string, SentTensor> }> {
  const found: [string, Tensor][] = [];
  const value = mapTree(tree, (leaf, path) => {
    if (!(leaf instanceof Tensor)) return leaf;
    found.push([path, leaf]);
    return null;
  });
  const sent = found.map(async ([path, tensor]) => {
    const bytes = (await tensor.bytes()).slice();
    return [path, { dtype: tensor.dtype, shape: tensor.shape, bytes }] as const;
  });
  return { value, tensors: new Map(await Promise.all(sent)) };
}
