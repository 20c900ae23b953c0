/** Per-parameter optimizer state. */
import { arena } from "../create";
import type { Device } from "../device";
import type { Rule } from "../rule/rule";
import { keep } from "../scope";
import type { Tensor } from "../tensor";
import type { Counters } from "./algorithm";
import type { Slot } from "./slot";

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

/** State tensors that are still to be made, for slots that share a device and a dtype. */
interface Missing {
  readonly device: Device;
  readonly dtype: "f32" | "f64";
  readonly wanted: { slot: Slot; key: string }[];
}

/**
 * Gives every slot the state it lacks: zeros, in one block of memory for each device and dtype.
 * Everything is allocated before the first slot changes, so that running out of memory loses nothing.
 */
export function completeState(slots: readonly Slot[], keys: readonly string[], initial: Counters): void {
  const missing: Missing[] = [];
  for (const slot of slots) {
    const { param, state } = slot;
    if (slot.isComplete(keys)) continue;
    for (const key of keys) {
      if (state?.tensors.has(key)) continue;
      const dtype = stateDType(param);
      let block = missing.find((known) => known.device === param.device && known.dtype === dtype);
      if (block === undefined) {
        block = { device: param.device, dtype, wanted: [] };
        missing.push(block);
      }
      block.wanted.push({ slot, key });
    }
  }
  const made = missing.map(({ device, dtype, wanted }) =>
    device.once(() =>
      arena(
        wanted.map(({ slot }) => slot.param.shape),
        dtype,
        device,
      ),
    ),
  );
  for (const slot of slots) slot.state ??= { counters: initial, tensors: new Map() };
  missing.forEach(({ wanted }, block) => {
    wanted.forEach(({ slot, key }, i) => {
      slot.state!.tensors.set(key, keep(made[block]![i]!));
    });
  });
}
