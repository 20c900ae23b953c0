/** Every kind of kernel and the file that writes it. */
import { FUSED_KINDS, type KernelSources, type Kind, kernelSources } from "@opt/core/backend";
import { map } from "../emit/map";
import { rule } from "../emit/rule";
import type { KernelSource } from "../kernel";
import { copy } from "./copy";
import { matmul } from "./matmul/matmul";
import { reduce } from "./reduce";
import { rows } from "./rows";
import { sumSquares } from "./sum-squares";

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
