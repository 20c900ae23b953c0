/** Which file makes which kernel. */
import type { PlainKind } from "@opt/core/backend";
import type { KernelSource } from "../kernel";
import { copy } from "./copy";
import { map } from "./map";
import { matmul } from "./matmul";
import { reduce } from "./reduce";
import { rows } from "./rows";
import { gather, scatterAdd } from "./rows-by-index";
import { rule } from "./rule";
import { sumSquares } from "./sum-squares";
import { fold, maxPool2d, maxPool2dGrad, unfold } from "./windows";

// biome-ignore lint/suspicious/noExplicitAny: what a kernel prepares is its own affair
export const KERNELS: { readonly [K in PlainKind]: KernelSource<K, any> } = {
  rule,
  map,
  copy,
  reduce,
  sumSquares,
  matmul,
  gather,
  scatterAdd,
  rows,
  unfold,
  fold,
  maxPool2d,
  maxPool2dGrad,
};
