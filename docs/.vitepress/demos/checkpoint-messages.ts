/** What the page of the checkpoint playground asks its worker. */
import type { Box, Inspection } from "@opt/checkpoint";

export type FileFormat = "safetensors" | "pt";

/** `open` without a file takes the sample. */
export type CheckpointAsk =
  | { readonly kind: "open"; readonly file: File | undefined }
  | { readonly kind: "look"; readonly name: string }
  | { readonly kind: "cut"; readonly name: string; readonly ranks: number }
  | { readonly kind: "save"; readonly as: FileFormat }
  | { readonly kind: "saveRank"; readonly rank: number; readonly ranks: number };

export type Opened = Inspection & { readonly name: string };

/** The finite numbers of a tensor. */
export interface Look {
  readonly least: number;
  readonly most: number;
  readonly mean: number;
  readonly deviation: number;
  /** How many are in each of equal parts of [least, most]. */
  readonly bars: readonly number[];
  /** NaN and infinite ones. */
  readonly others: number;
}

/** What one rank holds. */
export interface RankPart {
  readonly box: Box;
  /** Of all tensors. */
  readonly bytes: number;
}
