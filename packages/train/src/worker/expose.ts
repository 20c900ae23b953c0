/** The worker's side: runs a training when the page asks for it. */
import { Tensor } from "@opt/core";
import type { Callback, FitState } from "../fit/events";
import { type FromWorker, listen, type SentTensor, type ToWorker, type WorkerEvent, type WorkerPort } from "./messages";

/** What the worker's function gets. */
export interface ExposedRun {
  /** Aborted when the page stops the run: pass it to `fit`. */
  readonly signal: AbortSignal;
  /** A callback that tells the page each event. Steps are left out while the page is busy; their losses come with the next event. */
  report(): Callback;
}

/**
 * Runs `body` in this worker when a page, or a program in Node, calls `start`. What it returns goes there: plain data, and tensors at any
 * depth, whose bytes are moved. What it throws goes there too.
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
  const post = (message: FromWorker, transfer: ArrayBuffer[] = []) => port.postMessage(message, transfer);
  const controller = new AbortController();
  let isBusy = false; // the page has an event that it has not taken
  const begin = async (options: Options, lock: string) => {
    await hold(lock);
    post({ opt: "locked" });
    try {
      const run = {
        signal: controller.signal,
        report: () =>
          reporter(
            post,
            () => isBusy,
            (value) => (isBusy = value),
          ),
      };
      const transfer: ArrayBuffer[] = [];
      const value = await packed(await body(run, options), transfer);
      post({ opt: "result", value }, transfer);
    } catch (error) {
      const { message, stack, code } = error as Error & { code?: string };
      post({ opt: "error", error: { message: message ?? String(error), stack, code } });
    }
    port.unref?.();
  };
  listen(port, "message", (message: ToWorker) => {
    if (message.opt === "start") void begin(message.options as Options, message.lock);
    else if (message.opt === "stop") controller.abort();
    else if (message.opt === "taken") isBusy = false;
  });
  post({ opt: "ready" });
}

function ownPort(): WorkerPort & { unref?(): void } {
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

function reporter(
  post: (message: FromWorker) => void,
  isBusy: () => boolean,
  setBusy: (value: boolean) => void,
): Callback {
  let told = 0;
  const tell = (type: WorkerEvent["type"], state: FitState) => {
    const { epoch, epochs, step, epochStep, stepsPerEpoch, lr, history, checkpoint } = state;
    const logs = type === "epochEnd" ? history.epochs.at(-1)! : state.logs;
    const losses = history.losses.slice(told);
    told = history.losses.length;
    setBusy(true);
    const event = { type, epoch, epochs, step, epochStep, stepsPerEpoch, lr, logs, losses, checkpoint };
    post({ opt: "event", event });
  };
  return {
    onTrainBegin: (state) => {
      told = state.history.losses.length;
      tell("trainBegin", state);
    },
    onEpochBegin: (state) => tell("epochBegin", state),
    onStepEnd: (state) => (isBusy() ? undefined : tell("stepEnd", state)),
    onEvaluate: (state) => tell("evaluate", state),
    onEpochEnd: (state) => tell("epochEnd", state),
    onSave: (state) => tell("save", state),
    onTrainEnd: (state) => tell("trainEnd", state),
  };
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
