/** Every kind of kernel and the file that writes it. */
import { FUSED_KINDS, type KernelSources, type Kind, kernelSources } from "@opt/core/backend";
import type { KernelSource } from "../kernel";
import { copy } from "./copy";
import { map } from "./map";
import { matmul } from "./matmul/matmul";
import { reduce } from "./reduce/reduce";
import { sumSquares } from "./reduce/sum-squares";
import { rows } from "./rows";
import { rule } from "./rule/rule";

type Sources<K extends Kind> = { readonly [P in K]: KernelSource<P> };
type CommonKind = "copy" | "map" | "matmul" | "reduce" | "rows" | "rule" | "sumSquares";

const COMMON: Sources<CommonKind> = { copy, map, matmul, reduce, rows, rule, sumSquares };
const OF_OPS = [
  ...FUSED_KINDS,
  ...(["fold", "gather", "maxPool2d", "maxPool2dGrad", "scatterAdd", "unfold"] as const),
] satisfies Exclude<Kind, CommonKind>[];

/** What writes and launches the kernels of each kind. */
export const KERNELS = kernelSources("wasm", COMMON as Partial<Record<Kind, unknown>>, OF_OPS, async () => {
  return (await import("./of-ops")) satisfies Sources<(typeof OF_OPS)[number]>;
}) as KernelSources<KernelSource<Kind>>;
