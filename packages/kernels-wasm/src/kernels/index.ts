/** Every kind of kernel and the file that writes it. */
import { OptError } from "@opt/core";
import { isCarried, type Kind, type PlainKind } from "@opt/core/backend";
import { map } from "../emit/map";
import { rule } from "../emit/rule";
import type { KernelSource } from "../kernel";
import { copy } from "./copy";
import { matmul } from "./matmul/matmul";
import { reduce } from "./reduce";
import { rows } from "./rows";
import { sumSquares } from "./sum-squares";

/** The fused kernels of this device. */
export const FUSES = ["attention", "attentionGrad", "batchNorm", "batchNormGrad"] as const;

type OwnKind = PlainKind | (typeof FUSES)[number];
/** Kinds of tensor methods and optimizer steps; the others come with single ops. */
type CommonKind = "copy" | "map" | "matmul" | "reduce" | "rows" | "rule" | "sumSquares";
type Sources<K extends Kind> = { readonly [P in K]: KernelSource<P> };

const OF_OPS = [
  ...FUSES,
  ...(["fold", "gather", "maxPool2d", "maxPool2dGrad", "scatterAdd", "unfold"] as const),
] satisfies Exclude<OwnKind, CommonKind>[];

const sources: Sources<CommonKind> & Partial<Sources<Exclude<OwnKind, CommonKind>>> = {
  copy,
  map,
  matmul,
  reduce,
  rows,
  rule,
  sumSquares,
};

/** Loads the kernels of single ops, if the program has imported such an op. */
export async function loadKernels(): Promise<void> {
  if (sources.fold !== undefined || !OF_OPS.some(isCarried)) return;
  Object.assign(sources, (await import("./of-ops")) satisfies Sources<Exclude<OwnKind, CommonKind>>);
}

/** What writes and launches the kernels of a kind. @throws OptError DEVICE_UNAVAILABLE if its op was imported after `init` */
export function kernelSource(kind: Kind): KernelSource<Kind> {
  const source = (sources as Partial<Record<Kind, unknown>>)[kind];
  if (source === undefined) {
    const problem = `the kernels of ${kind} must be loaded first, got an op that was imported after init().`;
    throw new OptError("DEVICE_UNAVAILABLE", "wasm", problem, "Call await init() again after the import.");
  }
  return source as KernelSource<Kind>;
}
