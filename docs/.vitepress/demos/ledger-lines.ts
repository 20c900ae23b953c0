/** What the worker of the same run tells its page. */

export interface ComparedLine {
  readonly step: number;
  /** Checksums of all tensors together, in this page and in Node. */
  readonly here: string;
  readonly there: string;
  /** How many tensors a line has. */
  readonly tensors: number;
  readonly differing: readonly string[];
}

export type SameRunMessage =
  | { readonly kind: "device"; readonly name: string; readonly portable: boolean }
  | ({ readonly kind: "line" } & ComparedLine)
  | { readonly kind: "done" };
