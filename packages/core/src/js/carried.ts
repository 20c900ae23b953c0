/** Kernels that single ops bring to the js device, so that only those ship them who use the op. */
import type { Kind, Launch, Spec } from "../backend/spec";
import { shared } from "../host/shared";
import type { ComputeDType } from "../values/dtype";

/** What methods of tensors and steps launch is always there; these are not. */
export type CarriedKind = Exclude<Kind, "rule" | "map" | "copy" | "reduce" | "sumSquares" | "matmul" | "rows">;

export type CarriedRun<K extends Kind> = (dtype: ComputeDType, launch: Launch<K>) => void;

const carried = /* @__PURE__ */ shared("jsKernels", () => new Map<Kind, CarriedRun<never>>());

/** The spec of an op's kernel, which the js device runs as told. */
export function carrying<K extends CarriedKind>(spec: Spec<K>, run: CarriedRun<K>): Spec<K> {
  if (!carried.has(spec.kind)) carried.set(spec.kind, run as CarriedRun<never>);
  return spec;
}

/** Runs a launch whose spec has come with its kernel. */
export function carriedRun(launch: Launch<CarriedKind>): void {
  (carried.get(launch.kind) as CarriedRun<CarriedKind>)(launch.kernel.spec.dtype, launch);
}
