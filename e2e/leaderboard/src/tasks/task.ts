/** What a task of the leaderboard is: a model, its batches, its loss, and the loss that counts. */
import type { Generator, Tensor } from "@opt/core";
import type { Module } from "@opt/nn";

/** Files that a task reads, by name: of a package in Node, of the site in a page. */
export type ReadFile = (name: string) => Promise<Uint8Array>;

export interface Start {
  /** Draws the first weights and the order of the batches. */
  readonly generator: Generator;
  /** Tables of embeddings give row-sparse gradients. Tasks without tables ignore it. */
  readonly sparse: boolean;
}

/** A model in training. */
export interface Training {
  readonly model: Module;
  /** Batches without an end. */
  readonly batches: Iterator<readonly Tensor[]>;
  /** The loss of a batch. */
  loss(...batch: Tensor[]): Tensor;
  /** What `evaluation` takes: samples that are never trained on. */
  readonly unseen: readonly Tensor[];
  /** The loss that the table compares. */
  evaluation(...unseen: Tensor[]): Tensor;
}

export interface Task {
  readonly title: string;
  /** For readers: the model, its data, and the loss that counts. */
  readonly about: string;
  /** Gradients that a run may take. */
  readonly budget: number;
  /** Of AdamW where it steps what another optimizer does not take. */
  readonly restLr: number;
  /** Which parameters are matrices inside of the model. Default: as `combine` says. */
  readonly isMatrix?: (name: string, parameter: Tensor) => boolean;
  /** Which parameters are tables that may have row-sparse gradients. */
  readonly isTable?: (name: string) => boolean;
  /** What `prepared` reads. */
  readonly files: readonly string[];
  /** Reads the data once, then starts runs. */
  prepared(read: ReadFile): Promise<(start: Start) => Training>;
}
