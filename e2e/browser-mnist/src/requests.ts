/** What the page asks its worker. Each is a run of `@opt/train/worker`, and the first type here is its result. */
import type { DigitFiles } from "./digits";
import type { Measured, Settings } from "./run";

export interface Answers {
  /** The worker is ready, and a device is open. */
  open: Opened;
  /** A new run, from first weights or from where one was saved. */
  begin: Begun;
  /** Trains until it is stopped. */
  train: readonly Measured[];
  /** What the network reads in test digits. */
  names: ArrayLike<number>;
  /** How likely each digit is, for one image. */
  probabilities: ArrayLike<number>;
  /** The run as one safetensors file. */
  file: Blob;
  /** Stores the run in the browser. */
  keep: undefined;
}

export type Request =
  | { readonly ask: "open"; readonly train: DigitFiles; readonly test: DigitFiles; readonly device: string | undefined }
  | { readonly ask: "begin"; readonly settings: Settings }
  | { readonly ask: "begin"; readonly from: Blob | "kept"; readonly device: string }
  | { readonly ask: "train" }
  | { readonly ask: "names"; readonly positions: Int32Array }
  | { readonly ask: "probabilities"; readonly image: Float32Array }
  | { readonly ask: "file" }
  | { readonly ask: "keep" };

export interface Opened {
  readonly device: string;
  readonly devices: readonly DeviceChoice[];
  /** The learning rate that each optimizer begins with. */
  readonly rates: Readonly<Record<string, number>>;
}

export interface DeviceChoice {
  readonly name: string;
  /** Why it does not open here. */
  readonly reason: string | undefined;
  /** What is behind it, where that can be said. */
  readonly detail: string;
}

export interface Begun {
  readonly settings: Settings;
  readonly losses: readonly number[];
  readonly measured: readonly Measured[];
}
