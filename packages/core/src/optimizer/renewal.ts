/** Launches that renew state from gradients, beside steps: for averages of what not every step computes. */
import type { Scalar } from "../backend/memory";
import type { Kernel } from "../backend/spec";
import type { ScalarSource } from "../device/scalar-source";
import type { Rule } from "../rule/rule";
import type { StoredDType } from "../rule/stored";
import type { Tensor } from "../tensor/tensor";
import { numbersOf } from "../values/dtype";
import type { Algorithm, BaseOptions } from "./algorithm";
import { scalarsOf } from "./plan";
import { type Slot, stateKey, storedFormat } from "./state/state";

/** A rule of the buffers `grad` and one state. Its scalars are `constants`, or among the algorithm's. */
export interface StateRenewal {
  readonly rule: Rule;
  readonly constants: Readonly<Record<string, number>>;
}

/** One launch for the state of parameters in a group. It counts no step. */
export class RenewalLaunch<Options extends BaseOptions> implements ScalarSource {
  readonly #kernel: Kernel<"rule">;
  #scalars: readonly Scalar[] = [];

  constructor(
    private readonly algorithm: Algorithm<Options>,
    private readonly options: Options,
    private readonly renewal: StateRenewal,
    private readonly slots: readonly Slot[],
  ) {
    const { param } = slots[0]!;
    const [dtype] = numbersOf(param.dtype);
    const formats =
      dtype === "f64"
        ? { dtype }
        : { dtype: "f32" as const, stored: [dtype as StoredDType, storedFormat(stateOf(slots[0]!, renewal))] };
    this.#kernel = param.device.kernel({ kind: "rule", rule: renewal.rule, ...formats });
  }

  next(): readonly Scalar[] {
    const { algorithm, options, renewal, slots } = this;
    const { counters } = slots[0]!.state!.counter;
    this.#scalars = scalarsOf(algorithm, options, renewal.rule, counters, counters, renewal.constants);
    return this.#scalars;
  }

  commit(): void {}

  launch(): void {
    const { device } = this.slots[0]!.param;
    const states = this.slots.map((slot) => stateOf(slot, this.renewal));
    const tensors = this.slots.map(({ param }, i) => {
      const grad = param.grad!;
      const state = states[i]!;
      return [(grad.sparse?.numbers(false) ?? grad).memorySlice(), state.packed?.slice() ?? state.memorySlice()];
    });
    device.launch({ kind: "rule", kernel: this.#kernel, tensors, scalars: this.#scalars }, this);
    for (const { storage } of states) storage.overwritten();
    for (const { state } of this.slots) state!.isRenewed = true;
  }
}

const stateOf = ({ state }: Slot, { rule }: StateRenewal): Tensor => state!.tensors.get(stateKey(rule.buffers[1]!))!;

/** The launches for parameters of a group that have gradients and state: one for all that are stored alike. */
export function renewalsOf<Options extends BaseOptions>(
  algorithm: Algorithm<Options>,
  options: Options,
  renewal: StateRenewal,
  slots: readonly Slot[],
): RenewalLaunch<Options>[] {
  const lists = new Map<unknown, Map<string, Slot[]>>();
  for (const slot of slots) {
    const { device, dtype } = slot.param;
    const ofDevice = lists.get(device) ?? new Map<string, Slot[]>();
    lists.set(device, ofDevice);
    const key = `${dtype} ${storedFormat(stateOf(slot, renewal))}`;
    ofDevice.set(key, [...(ofDevice.get(key) ?? []), slot]);
  }
  return [...lists.values()].flatMap((ofDevice) =>
    [...ofDevice.values()].map((members) => new RenewalLaunch(algorithm, options, renewal, members)),
  );
}
