/** What a run leaves behind: a record for each epoch, and the loss of each step. */

/** Numbers of one epoch: `loss`, `val_loss`, each metric as `accuracy` and `val_accuracy`. */
export interface EpochRecord {
  /** Mean over the samples of the epoch. */
  readonly loss: number;
  /** Learning rate of the first group after the epoch. */
  readonly lr: number;
  /** Of training, without validation. */
  readonly seconds: number;
  readonly [name: string]: number;
}

/** Returned by `fit`. */
export interface History {
  readonly epochs: EpochRecord[];
  /** The loss of every step, on this rank. */
  readonly losses: number[];
}
