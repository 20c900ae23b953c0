/** What a checkpoint can be converted into, and how. */
import type { Rename } from "../import/names/rename";
import type { Naming } from "../import/names/renaming";
import type { Layout } from "../layout/layout";
import type { OpenOptions } from "../read/open";
import type { Selection } from "../read/select";
import type { ProgressCallback } from "../stores/progress";

export const TARGETS = ["safetensors", "ckpt", "checkpoint", "pt", "dcp"] as const;

/**
 * `safetensors`: one file of whole tensors; `ckpt`: MindSpore's; `checkpoint`: a folder of ours; `pt`: a file for `torch.load`; `dcp`: a folder for `torch.distributed.checkpoint.load`.
 */
export type ConvertTarget = (typeof TARGETS)[number];

export interface ConvertOptions extends Selection, OpenOptions, Naming {
  readonly to: ConvertTarget;
  /** Names, or patterns with `*`, of what is left out: as the source calls it, or as it is called here. */
  readonly exclude?: readonly string[];
  /** New names for the result, by pattern: `{ "encoder.*": "*" }`. The first pattern that matches wins; optimizer state follows. */
  readonly rename?: Rename;
  /** Replace what is there: a folder, or a step of a run. Files are always replaced. */
  readonly overwrite?: boolean;
  /** Most bytes of buffers, 64 MiB without it. */
  readonly maxMemory?: number;
  /** End MindSpore files with a checksum. */
  readonly crc?: boolean;
  /** For how many ranks: of a checkpoint of ours, 1 without it; of `ckpt`, a folder of their files and the strategy. */
  readonly ranks?: number;
  /** How they are cut. */
  readonly layout?: Layout;
  /** For `ckpt` with ranks: part `i` of `n` of the work, counted from 1, so that several processes share it. */
  readonly job?: readonly [i: number, n: number];
  /** For `safetensors`: a folder of files of at most so many bytes of tensors, and their index, as Hugging Face's libraries load it. */
  readonly maxShardSize?: number;
  readonly progress?: ProgressCallback;
}

export interface ConvertResult {
  readonly path: string;
  /** The format that was found. */
  readonly from: string;
  readonly to: ConvertTarget;
  readonly tensors: number;
  /** Tensors that no checksum of ours vouches for. */
  readonly unverified: readonly string[];
}
