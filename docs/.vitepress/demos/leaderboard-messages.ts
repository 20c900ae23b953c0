/** What the worker of the leaderboard tells its page, and what it is asked. */

/** A row of the table. */
export interface Repeatable {
  readonly task: string;
  readonly title: string;
  readonly optimizer: string;
  readonly lr: number;
  /** Of the last weights in Node, with seed 0. */
  readonly checksum: string;
}

export type LeaderboardMessage =
  | { readonly kind: "device"; readonly name: string; readonly isPortable: boolean }
  | { readonly kind: "loss"; readonly steps: number; readonly budget: number; readonly loss: number }
  | { readonly kind: "done"; readonly checksum: string };
