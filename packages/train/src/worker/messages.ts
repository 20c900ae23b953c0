/** What a page and its worker say to each other. */

/** A run's event as plain data. */
export interface WorkerEvent {
  readonly type: "trainBegin" | "epochBegin" | "stepEnd" | "evaluate" | "epochEnd" | "save" | "trainEnd";
  /** The current epoch, from 0; at `epochEnd` the number of epochs done. */
  readonly epoch: number;
  /** Epochs of the whole run. */
  readonly epochs: number;
  /** Optimizer steps of the run. */
  readonly step: number;
  /** Steps of this epoch. 0 at `epochEnd`, where the next one begins. */
  readonly epochStep: number;
  /** Undefined where the data have no length. */
  readonly stepsPerEpoch: number | undefined;
  readonly lr: number;
  /** Means of the epoch so far; at `epochEnd` the epoch's record. */
  readonly logs: Readonly<Record<string, number>>;
  /** The loss of each step since the event before. */
  readonly losses: readonly number[];
  /** The folder of the last checkpoint. */
  readonly checkpoint: string | undefined;
}

/** The page asks whether the worker is `ready`; the worker says so then, and by itself; the page says `start`. All else goes through the run's port. */
export type OpeningMessage =
  | { readonly opt: "ask" | "ready" }
  | { readonly opt: "start"; readonly port: MessagePort; readonly options: unknown; readonly lock: string };

export type ToRun = "stop" | "taken";

export type FromRun =
  | { readonly type: "locked" }
  | { readonly type: "event"; readonly event: WorkerEvent }
  | { readonly type: "result"; readonly value: unknown; readonly tensors: ReadonlyMap<string, SentTensor> }
  | { readonly type: "error"; readonly message: string; readonly stack?: string; readonly code?: string };

/** A tensor on its way, beside the tree in which null is in its place. */
export interface SentTensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** A Worker, of the web or of Node. */
export interface WorkerPort {
  postMessage(message: unknown, transfer: never[]): void;
  // biome-ignore lint/suspicious/noExplicitAny: each event has a value of its own
  on?(type: string, listener: (value: any) => void): unknown;
  // biome-ignore lint/suspicious/noExplicitAny: each event has a value of its own
  addEventListener?(type: string, listener: (event: any) => void): void;
  /** Of Node: a worker alone does not keep the program alive. */
  unref?(): void;
}

/** Listens in the way that the port has; messages come without their event. */
// biome-ignore lint/suspicious/noExplicitAny: each event has a value of its own
export function listen(port: WorkerPort, type: string, listener: (value: any) => void): void {
  if (port.on) port.on(type, listener);
  else port.addEventListener!(type, (event) => listener(type === "message" ? event.data : event));
}
