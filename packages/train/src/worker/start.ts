/** The page's side, or a program's in Node: starts a worker's training, and hears of it. */
import { check, type DType, OptError, show, tensorFromBytes } from "@opt/core";
import { Stream } from "../stream";
import { Connection } from "./connection";
import { type FromRun, isSentTensor, type SentError, type WorkerEvent, type WorkerPort } from "./messages";

/** A training in a worker: its events, and its result. */
export interface StartedRun<Result> extends AsyncIterable<WorkerEvent> {
  /** What the worker's function returns. Rejects with what it throws, and with DEVICE_LOST where the worker ends before. */
  readonly result: Promise<Result>;
  /** Ends the training after the present step; the result follows. */
  stop(): void;
}

/**
 * Starts the function that a worker exposes. Tensors of its result are on the default device here.
 *
 * The worker waits for nobody: while you hold an event, or iterate over none, steps are left out. If the worker dies, `result` rejects;
 * start another one, whose `fit` goes on from its last checkpoint with `resume: true`.
 *
 * Start a worker as often as you like, also during a run: it keeps its module's variables until you call `terminate()`.
 *
 * @throws OptError BAD_ARGUMENT unless it is a worker of the web or of Node
 * ```js
 * const run = start(new Worker(new URL("./train.js", import.meta.url), { type: "module" }), { epochs: 3 });
 * for await (const { type, logs } of run) if (type === "epochEnd") console.log(logs);
 * model.loadStateDict(await run.result);
 * ```
 */
export function start<Result = unknown>(worker: WorkerPort, options?: unknown): StartedRun<Result> {
  const isPort = typeof worker?.postMessage === "function" && ("on" in worker || "addEventListener" in worker);
  check(isPort, "BAD_ARGUMENT", "start", () => `needs a Worker, got ${show(worker)}.`, "new Worker(url)");
  const connection = Connection.to(worker);
  const lock = `@opt/train ${Date.now()} ${Math.random()}`;
  const streams = new Set<Stream<WorkerEvent>>();
  let isDone = false;
  let settle: { resolve(value: Result): void; reject(error: unknown): void };
  const result = new Promise<Result>((resolve, reject) => {
    settle = { resolve, reject };
  });
  result.catch(() => {}); // also thrown to who iterates
  const end = (finish: () => void) => {
    if (isDone) return;
    isDone = true;
    connection.end(run);
    finish();
    for (const stream of streams) stream.end();
  };
  const died = (why: string) =>
    end(() => {
      const cure = "Start another worker; with checkpoints and resume: true it goes on from the last one.";
      settle.reject(new OptError("DEVICE_LOST", "start", `the worker must live until its result, ${why}.`, cure));
    });
  const receive = (message: FromRun) => {
    if (message.opt === "locked") void released(lock).then(() => died("it has ended"));
    else if (message.opt === "result") end(() => settle.resolve(unpacked(message.value) as Result));
    else if (message.opt === "error") end(() => settle.reject(receivedError(message.error)));
    else void tell(message.event).then(() => connection.post({ opt: "taken", run }));
  };
  const run = connection.begin({ receive, died }, options, lock);

  async function tell(event: WorkerEvent): Promise<void> {
    await Promise.all([...streams].map((stream) => stream.push(event)));
  }
  async function* read(): AsyncGenerator<WorkerEvent, void, undefined> {
    const stream = new Stream<WorkerEvent>();
    if (isDone) stream.end();
    streams.add(stream);
    try {
      yield* stream.read();
      await result;
    } finally {
      streams.delete(stream);
    }
  }
  return { result, stop: () => connection.post({ opt: "stop", run }), [Symbol.asyncIterator]: read };
}

/** Resolves when the worker no longer holds its lock. */
async function released(lock: string): Promise<void> {
  if (typeof navigator === "object" && navigator.locks !== undefined) await navigator.locks.request(lock, () => {});
  else await new Promise(() => {});
}

function receivedError({ message, stack, code }: SentError): Error {
  const error = new Error(message);
  if (code !== undefined) Object.setPrototypeOf(Object.assign(error, { code, name: "OptError" }), OptError.prototype);
  return Object.assign(error, { stack });
}

function unpacked(tree: unknown): unknown {
  if (isSentTensor(tree)) return tensorFromBytes(tree.bytes, [...tree.shape], { dtype: tree.dtype as DType });
  if (Array.isArray(tree)) return tree.map(unpacked);
  if (typeof tree !== "object" || tree === null || Object.getPrototypeOf(tree) !== Object.prototype) return tree;
  return Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, unpacked(value)]));
}
