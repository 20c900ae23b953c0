/** What the page of the fine-tuning asks its worker. */
import type { MemoryPlan } from "@opt/models";

/** Of the page's own files. */
export const FOLDER = "fine-tune";

/** A run that is kept there, as `run.json`. */
export interface Kept {
  readonly text: string;
  /** The name of the user's folder; null for the shipped base. */
  readonly base: string | null;
  readonly isPaused: boolean;
}

/**
 * `begin` opens a run: a new one, which replaces the one that was kept, or that one. `train` then gives the steps' events; `losses`,
 * `pause` and `write` may come at any time.
 */
export type FineTuneAsk =
  | { readonly kind: "begin"; readonly text: string; readonly files: readonly File[] }
  | { readonly kind: "goOn"; readonly kept: Kept }
  | { readonly kind: "train" }
  | { readonly kind: "losses" }
  | { readonly kind: "pause"; readonly isPaused: boolean }
  | { readonly kind: "write" };

export interface Begun {
  /** Numbers of the model, and those of them that train. */
  readonly all: number;
  readonly trained: number;
  readonly plan: MemoryPlan;
  /** Loss on the last tenth of the text. */
  readonly unseen: number;
  readonly written: string;
}

export interface Ended {
  readonly unseen: number;
  /** PEFT's, by name. */
  readonly files: Readonly<Record<string, Blob>>;
}
