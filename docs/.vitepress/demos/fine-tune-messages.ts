/** What the page of the fine-tuning asks its worker. */

/** Of the base: its file does not say. */
export const HEADS = 4;
export const ADAPTERS = { rank: 16, alpha: 32, lr: 1e-2 };
export const STEPS = 500;

/** `begin` loads the base; `train` gives the steps' events; `write` may come at any time. */
export type FineTuneAsk =
  | { readonly kind: "begin"; readonly text: string }
  | { readonly kind: "train" }
  | { readonly kind: "write" };

export interface Begun {
  /** Numbers of the model, and those of them that train. */
  readonly all: number;
  readonly trained: number;
  /** Loss on the last tenth of the text. */
  readonly unseen: number;
  readonly written: string;
}

export interface Ended {
  readonly unseen: number;
  readonly adapter: Blob;
  readonly merged: Blob;
}
