/** Per-parameter optimizer state, and its plain form in state dicts. */

import { noGrad } from "../autograd";
import { arena } from "../create";
import type { Device } from "../device";
import type { DType } from "../dtype";
import { cast } from "../ops";
import type { Rule } from "../rule/rule";
import { keep } from "../scope";
import type { Tensor } from "../tensor";
import type { Counters } from "./algorithm";

/** The state dict's name of the float32 copy that 16-bit parameters are trained in. */
export const MASTER = "master_param";

export interface ParameterState {
  /** Parameters with equal counters share the object: they step in one launch. */
  counters: Counters;
  /** By snake_case name: exp_avg, exp_avg_sq, ... and master_param for 16-bit parameters. */
  readonly tensors: Map<string, Tensor>;
  /** The parameter's version that the master copy follows. */
  masterVersion: number;
}

/** expAvgSq -> exp_avg_sq: PyTorch's key of a rule's buffer. */
export function stateKey(buffer: string): string {
  return buffer.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The state buffers of a rule. */
export function stateKeys(rule: Rule): string[] {
  return rule.buffers.slice(2).map(stateKey);
}

/** The dtype that a parameter is stepped in: its own, or float32 for 16-bit ones. */
export function stateDType(param: Tensor): "f32" | "f64" {
  return param.dtype === "f64" ? "f64" : "f32";
}

/** Adds what is missing of the state of parameters on one device, zeros in one block of memory each dtype. */
export function completeState(
  params: readonly Tensor[],
  keys: readonly string[],
  states: Map<Tensor, ParameterState>,
  initial: Counters,
): void {
  const missing = new Map<Device, Map<DType, { param: Tensor; key: string }[]>>();
  for (const param of params) {
    const tensors = states.get(param)?.tensors;
    for (const key of keys) {
      if (tensors?.has(key)) continue;
      const byDType = missing.get(param.device) ?? new Map<DType, { param: Tensor; key: string }[]>();
      missing.set(param.device, byDType);
      const dtype = stateDType(param);
      const wanted = byDType.get(dtype) ?? [];
      wanted.push({ param, key });
      byDType.set(dtype, wanted);
    }
  }
  // Allocate everything before the first state changes: running out of memory then loses nothing.
  const made: { param: Tensor; key: string; tensor: Tensor }[] = [];
  for (const [device, byDType] of missing) {
    for (const [dtype, wanted] of byDType) {
      const views = arena(
        wanted.map(({ param }) => param.shape),
        dtype,
        device,
      );
      wanted.forEach(({ param, key }, i) => {
        made.push({ param, key, tensor: keep(views[i]!) });
      });
    }
  }
  for (const param of params) {
    if (!states.has(param)) states.set(param, { counters: initial, tensors: new Map(), masterVersion: -1 });
  }
  for (const { param, key, tensor } of made) states.get(param)!.tensors.set(key, tensor);
}

/** The tensor that the rule updates: the parameter, or the float32 master copy of a 16-bit one, renewed if the parameter was set. */
export function steppedParameter(param: Tensor, state: ParameterState): Tensor {
  if (param.dtype === "f32" || param.dtype === "f64") return param;
  const known = state.tensors.get(MASTER);
  if (known !== undefined && state.masterVersion === param.version) return known;
  known?.dispose();
  const master = keep(noGrad(() => cast(param, "f32")));
  state.tensors.set(MASTER, master);
  state.masterVersion = param.version;
  return master;
}
