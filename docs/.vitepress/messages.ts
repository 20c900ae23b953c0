/** What the worker of a sample tells the page. */

export interface Picture {
  /** One line, named lines, or the rows of a map. */
  readonly values: ArrayLike<number> | Readonly<Record<string, ArrayLike<number>>> | readonly ArrayLike<number>[];
  readonly title?: string;
  /** Of lines: where the values are, and what the axes show. */
  readonly x?: ArrayLike<number>;
  readonly xLabel?: string;
  readonly yLabel?: string;
  readonly log?: boolean;
  readonly logY?: boolean;
  /** Points over a map, in its unit square [-1, 1]. */
  readonly points?: readonly (readonly [number, number])[];
  /** The class of each point. */
  readonly classes?: readonly number[];
}

export type Message =
  | { readonly kind: "log"; readonly text: string }
  | { readonly kind: "plot"; readonly picture: Picture }
  | { readonly kind: "error"; readonly text: string; readonly line?: number | undefined }
  | { readonly kind: "done" };
