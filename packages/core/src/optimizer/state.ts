/** Per-parameter optimizer state. */
import type { Rule } from "../rule/rule";
import type { StoredDType, StoredFormats } from "../rule/stored";
import type { Tensor } from "../tensor/tensor";
import type { ComputeDType } from "../values/dtype";
import type { Counters } from "./algorithm";

/** The state dict's name of the float32 copy that 16-bit parameters are trained in. */
export const MASTER = "master_param";

export interface ParameterState {
  /** Parameters with equal counters share the object: they step in one launch. */
  counters: Counters;
  /** By snake_case name: exp_avg, exp_avg_sq, ... and master_param for 16-bit parameters. */
  readonly tensors: Map<string, Tensor>;
}

/** expAvgSq -> exp_avg_sq: PyTorch's key of a rule's buffer. */
function stateKey(buffer: string): string {
  return buffer.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

const keysOfRules = new WeakMap<Rule, readonly string[]>();

/** The state buffers of a rule under their names in state dicts; one list for each rule. */
export function stateKeys(rule: Rule): readonly string[] {
  let keys = keysOfRules.get(rule);
  if (keys === undefined) {
    keys = rule.buffers.slice(2).map(stateKey);
    keysOfRules.set(rule, keys);
  }
  return keys;
}

/** The dtype that a parameter is stepped in: its own, or float32 for 16-bit ones. */
export function stateDType(param: Tensor): "f32" | "f64" {
  return param.dtype === "f64" ? "f64" : "f32";
}

/** How a rule's launch finds a parameter like this: 16-bit ones come as their master copy, which the parameter mirrors, and their gradient as it is. */
export function formatsOf(rule: Rule, param: Tensor): { dtype: ComputeDType; stored?: StoredFormats } {
  const { dtype } = param;
  if (dtype === "f32" || dtype === "f64") return { dtype };
  const narrow = dtype as StoredDType;
  return { dtype: "f32", stored: [...rule.buffers.map((_, slot) => (slot === 1 ? narrow : "f32")), narrow] };
}
