/** The page's side, or a program's in Node: starts a worker's training, and hears of it. */
import { check, type DType, OptError, show, tensorFromBytes } from "@opt/core";
import { Stream } from "../stream";
import { mapTree } from "../tree";
import { type FromRun, listen, type OpeningMessage, type ToRun, type WorkerEvent, type WorkerPort } from "./messages";

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
  const { ready, runs } = linkTo(worker);
  const { port1: port, port2 } = new MessageChannel();
  const post = (message: ToRun) => port.postMessage(message);
  const lock = `@opt/train ${Date.now()} ${Math.random()}`;
  const streams = new Set<Stream<WorkerEvent>>();
  let isDone = false;
  let settle: { resolve(value: Result): void; reject(error: unknown): void };
  const result = new Promise<Result>((resolve, reject) => {
    settle = { resolve, reject };
  });
  result.catch(() => {}); // also thrown to who iterates
  const end = (finish: () => void) => {
    isDone = true;
    runs.delete(died);
    port.close();
    finish();
    for (const stream of streams) stream.end();
  };
  const died = (why: string) => {
    const cure = "Start another worker; with checkpoints and resume: true it goes on from the last one.";
    const lost = new OptError("DEVICE_LOST", "start", `the worker must live until its result, ${why}.`, cure);
    if (!isDone) end(() => settle.reject(lost));
  };
  port.onmessage = ({ data }: { data: FromRun }) => {
    if (data.type === "locked") void released(lock).then(() => died("it has ended"));
    else if (data.type === "result") end(() => settle.resolve(unpacked(data) as Result));
    else if (data.type === "error") end(() => settle.reject(receivedError(data)));
    else void Promise.all([...streams].map((stream) => stream.push(data.event))).then(() => post("taken"));
  };
  port.onmessageerror = () => died("it sent what cannot be read");
  runs.add(died);
  void ready.then(() =>
    worker.postMessage({ opt: "start", port: port2, options, lock } satisfies OpeningMessage, [port2] as never[]),
  );

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
  return { result, stop: () => post("stop"), [Symbol.asyncIterator]: read };
}

/** What is known of a worker. */
interface Link {
  /** The worker listens. */
  readonly ready: Promise<void>;
  /** Of each run, what is called when the worker ends. */
  readonly runs: Set<(why: string) => void>;
}

const links = new WeakMap<WorkerPort, Link>();

function linkTo(worker: WorkerPort): Link {
  const known = links.get(worker);
  if (known) return known;
  const runs: Link["runs"] = new Set();
  const died = (why: string) => {
    for (const end of [...runs]) end(why);
  };
  const ready = new Promise<void>((resolve) => {
    listen(worker, "message", (message: OpeningMessage | undefined) => {
      if (message?.opt === "ready") resolve();
    });
  });
  worker.postMessage({ opt: "ask" } satisfies OpeningMessage, []); // it may have said so before anybody listened
  listen(worker, "error", (error: { message?: string; preventDefault?(): void }) => {
    error.preventDefault?.();
    died(`it failed: ${error.message ?? "no reason is known"}`);
  });
  listen(worker, "exit", (code: unknown) => died(`it has ended with code ${code}`));
  worker.unref?.(); // the ports of its runs keep a program alive
  const link = { ready, runs };
  links.set(worker, link);
  return link;
}

/** Resolves when the worker no longer holds its lock. */
async function released(lock: string): Promise<void> {
  if (typeof navigator === "object" && navigator.locks !== undefined) await navigator.locks.request(lock, () => {});
  else await new Promise(() => {});
}

function receivedError({ message, stack, code }: FromRun & { type: "error" }): Error {
  const error = new Error(message);
  if (code !== undefined) Object.setPrototypeOf(Object.assign(error, { code, name: "OptError" }), OptError.prototype);
  return Object.assign(error, { stack });
}

const unpacked = ({ value, tensors }: FromRun & { type: "result" }) =>
  mapTree(value, (leaf, path) => {
    const sent = tensors.get(path);
    return sent ? tensorFromBytes(sent.bytes, [...sent.shape], { dtype: sent.dtype as DType }) : leaf;
  });
