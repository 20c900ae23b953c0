/** Which file makes which kernel. */
import { type KernelSources, type Kind, kernelSources, type PlainKind } from "@opt/core/backend";
import type { KernelSource } from "../kernel";
import { copy } from "./copy";
import { map } from "./map";
import { matmul } from "./matmul";
import { reduce } from "./reduce";
import { rows } from "./rows";
import { rule } from "./rule";
import { sumSquares } from "./sum-squares";

// biome-ignore lint/suspicious/noExplicitAny: what a kernel prepares is its own affair
type Sources<K extends Kind> = { readonly [P in K]: KernelSource<P, any> };
type CommonKind = "copy" | "map" | "matmul" | "reduce" | "rows" | "rule" | "sumSquares";

const COMMON: Sources<CommonKind> = { copy, map, matmul, reduce, rows, rule, sumSquares };
const OF_OPS = ["fold", "gather", "maxPool2d", "maxPool2dGrad", "scatterAdd", "unfold"] as const satisfies Exclude<
  PlainKind,
  CommonKind
>[];

export const KERNELS = kernelSources("webgpu", COMMON as Partial<Record<Kind, unknown>>, OF_OPS, async () => {
  return (await import("./of-ops")) satisfies Sources<(typeof OF_OPS)[number]>;
}) as KernelSources<KernelSource<Kind, unknown>>;
