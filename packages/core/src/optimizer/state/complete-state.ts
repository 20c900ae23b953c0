/** Gives parameters the state that they lack. */
import { arena } from "../../create";
import type { Device } from "../../device/device";
import { once } from "../../device/recorder";
import { keep } from "../../device/scope";
import type { PackedDType } from "../../rule/codebook";
import type { Rule } from "../../rule/rule";
import type { DType } from "../../values/dtype";
import type { Counters, GroupOptions } from "../algorithm";
import type { Slot } from "../slot";
import { stateKeys, statePacking, storedState } from "./state";

/** State tensors that are still to be made, for slots that share a device and a dtype. */
interface Missing {
  readonly device: Device;
  readonly dtype: DType | PackedDType;
  readonly wanted: { slot: Slot; key: string }[];
}

/**
 * Gives every slot the state it lacks: zeros, in one block of memory for each device and dtype.
 * Everything is allocated before the first slot changes, so that running out of memory loses nothing.
 */
export function completeState(slots: readonly Slot[], rule: Rule, initial: Counters, options: GroupOptions): void {
  const missing: Missing[] = [];
  const keys = stateKeys(rule);
  const incomplete = slots.filter((slot) => !slot.isComplete(keys));
  // All tensors of a key in a row: a launch then walks on in each buffer, as if it were one.
  for (const key of keys) {
    for (const slot of incomplete) {
      const { param, state } = slot;
      if (state?.tensors.has(key)) continue;
      const dtype = storedState(rule, key, param, options);
      let block = missing.find((known) => known.device === param.device && known.dtype === dtype);
      if (block === undefined) {
        block = { device: param.device, dtype, wanted: [] };
        missing.push(block);
      }
      block.wanted.push({ slot, key });
    }
  }
  const made = missing.map(({ device, dtype, wanted }) =>
    once(() => {
      const shapes = wanted.map(({ slot }) => slot.param.shape);
      return statePacking.zeros?.(shapes, dtype, device) ?? arena(shapes, dtype as DType, device);
    }),
  );
  for (const slot of slots) slot.state ??= { counters: initial, tensors: new Map() };
  missing.forEach(({ wanted }, block) => {
    wanted.forEach(({ slot, key }, i) => {
      slot.state!.tensors.set(key, keep(made[block]![i]!));
    });
  });
}
