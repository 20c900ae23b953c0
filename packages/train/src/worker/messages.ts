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

/** `run` numbers the runs of a page. */
export type ToWorker =
  | { readonly opt: "start"; readonly run: number; readonly options: unknown; readonly lock: string }
  | { readonly opt: "stop"; readonly run: number }
  | { readonly opt: "taken"; readonly run: number };

export type FromWorker = { readonly opt: "ready" } | FromRun;

export type FromRun =
  | { readonly opt: "locked"; readonly run: number }
  | { readonly opt: "event"; readonly run: number; readonly event: WorkerEvent }
  | { readonly opt: "result"; readonly run: number; readonly value: unknown }
  | { readonly opt: "error"; readonly run: number; readonly error: SentError };

/** An error on its way. */
export interface SentError {
  readonly message: string;
  readonly stack: string | undefined;
  readonly code: string | undefined;
}

/** A tensor on its way. */
export interface SentTensor {
  readonly optTensor: true;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

export const isSentTensor = (value: unknown): value is SentTensor =>
  typeof value === "object" && value !== null && (value as Partial<SentTensor>).optTensor === true;

/** A Worker or MessagePort, of the web or of Node. */
export interface WorkerPort {
  postMessage(message: unknown, transfer: ArrayBuffer[]): void;
  // biome-ignore lint/suspicious/noExplicitAny: each event has a value of its own
  on?(type: string, listener: (value: any) => void): unknown;
  // biome-ignore lint/suspicious/noExplicitAny: each event has a value of its own
  addEventListener?(type: string, listener: (event: any) => void): void;
  /** Of Node: whether the program waits for the worker. */
  ref?(): void;
  unref?(): void;
}

/** Listens in the way that the port has; messages come without their event. */
// biome-ignore lint/suspicious/noExplicitAny: each event has a value of its own
export function listen(port: WorkerPort, type: string, listener: (value: any) => void): void {
  if (port.on) port.on(type, listener);
  else port.addEventListener!(type, (event) => listener(type === "message" ? event.data : event));
}
