/** Kernels that single ops bring to the js device, so that only those ship them who use the op. */
import type { Kind, Launch } from "../backend/spec";
import { shared } from "../host/shared";
import type { ComputeDType } from "../values/dtype";

/** What methods of tensors and steps launch is always there; these are not. */
export type CarriedKind = Exclude<Kind, "rule" | "map" | "copy" | "reduce" | "sumSquares" | "matmul" | "rows">;

export type CarriedRun<K extends Kind> = (dtype: ComputeDType, launch: Launch<K>) => void;

const kernels = /* @__PURE__ */ shared("jsKernels", () => new Map<Kind, CarriedRun<never>>());

/** The kind of an op's kernel, which the js device runs as told. Made when the op is imported: other devices load their kernels by it. */
export function carried<K extends CarriedKind>(kind: K, run: CarriedRun<K>): K {
  if (!kernels.has(kind)) kernels.set(kind, run as CarriedRun<never>);
  return kind;
}

/** True if an op with a kernel of this kind was imported. */
export function isCarried(kind: Kind): boolean {
  return kernels.has(kind);
}

/** Runs a launch of a kind that has come with its kernel. */
export function carriedRun(launch: Launch<CarriedKind>): void {
  (kernels.get(launch.kind) as CarriedRun<CarriedKind>)(launch.kernel.spec.dtype as ComputeDType, launch);
}
