/** Gives parameters the state that they lack. */
import { arena } from "../create";
import type { Device } from "../device/device";
import { once } from "../device/recorder";
import { keep } from "../device/scope";
import type { DType } from "../values/dtype";
import type { Counters, GroupOptions } from "./algorithm";
import type { Slot } from "./slot";
import { stateDType } from "./state";

/** State tensors that are still to be made, for slots that share a device and a dtype. */
interface Missing {
  readonly device: Device;
  readonly dtype: DType;
  readonly wanted: { slot: Slot; key: string }[];
}

/**
 * Gives every slot the state it lacks: zeros, in one block of memory for each device and dtype.
 * Everything is allocated before the first slot changes, so that running out of memory loses nothing.
 */
export function completeState(
  slots: readonly Slot[],
  keys: readonly string[],
  initial: Counters,
  options: GroupOptions,
): void {
  const missing: Missing[] = [];
  for (const slot of slots) {
    const { param, state } = slot;
    if (slot.isComplete(keys)) continue;
    for (const key of keys) {
      if (state?.tensors.has(key)) continue;
      const dtype = stateDType(param, options);
      let block = missing.find((known) => known.device === param.device && known.dtype === dtype);
      if (block === undefined) {
        block = { device: param.device, dtype, wanted: [] };
        missing.push(block);
      }
      block.wanted.push({ slot, key });
    }
  }
  const made = missing.map(({ device, dtype, wanted }) =>
    once(() =>
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
