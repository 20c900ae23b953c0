/** Every kind of kernel and the file that writes it. */
import type { PlainKind } from "@opt/core/backend";
import { map } from "../emit/map";
import { rule } from "../emit/rule";
import type { KernelSource } from "../kernel";
import { batchNorm, batchNormGrad } from "./batch-norm";
import { copy } from "./copy";
import { fold, unfold } from "./fold";
import { gather } from "./gather";
import { matmul } from "./matmul/matmul";
import { maxPool2d, maxPool2dGrad } from "./max-pool";
import { reduce } from "./reduce";
import { rows } from "./rows";
import { scatterAdd } from "./scatter-add";
import { sumSquares } from "./sum-squares";

/** The fused kernels of this device. */
export const FUSES = ["batchNorm", "batchNormGrad"] as const;

export type OwnKind = PlainKind | (typeof FUSES)[number];

export const KERNELS: { readonly [K in OwnKind]: KernelSource<K> } = {
  batchNorm,
  batchNormGrad,
  copy,
  fold,
  gather,
  map,
  matmul,
  maxPool2d,
  maxPool2dGrad,
  reduce,
  rows,
  rule,
  scatterAdd,
  sumSquares,
  unfold,
};
