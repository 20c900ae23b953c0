/** Launches that renew state from gradients, beside steps: for averages of what not every step computes. */
import type { Scalar } from "../backend/memory";
import type { Kernel } from "../backend/spec";
import type { ScalarSource } from "../device/scalar-source";
import { tidy } from "../device/scope";
import type { Rule } from "../rule/rule";
import type { StoredDType } from "../rule/stored";
import { noGrad } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";
import { numbersOf } from "../values/dtype";
import type { Algorithm, BaseOptions } from "./algorithm";
import type { Optimizer } from "./optimizer";
import { scalarsOf } from "./plan";
import { type Slot, stateKey, storedFormat } from "./state/state";

/** A rule of the buffers `grad` and one state. Its scalars are `constants`, or among the algorithm's. */
interface StateRenewal {
  readonly rule: Rule;
  readonly constants: Readonly<Record<string, number>>;
}

/** What only optimizers themselves call. */
interface Renewable {
  readonly algorithm: Algorithm<BaseOptions>;
  prepared(): readonly { readonly options: BaseOptions; readonly slots: readonly Slot[] }[];
}

/** One launch for the state of parameters in a group. It counts no step. */
class RenewalLaunch<Options extends BaseOptions> implements ScalarSource {
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

/**
 * Renews the state of every parameter that has a gradient, from that gradient, by a rule of the buffers `grad` and the state. Its scalars are
 * `constants`, or among the algorithm's, which sets `renewsState`. Nothing is clipped, counted or negated, and hooks do not run.
 *
 * @throws OptError as `step()` does; nothing has changed then
 */
export function renewState(optimizer: Optimizer, rule: Rule, constants: Readonly<Record<string, number>> = {}): void {
  const { algorithm, prepared } = optimizer as unknown as Renewable;
  noGrad(() =>
    tidy(() => {
      const launches = prepared
        .call(optimizer)
        .flatMap(({ options, slots }) => renewalsOf(algorithm, options, { rule, constants }, slots));
      for (const launch of launches) launch.next();
      for (const launch of launches) launch.launch();
    }),
  );
}

/** The launches for parameters of a group that have gradients and state: one for all that are stored alike. */
function renewalsOf<Options extends BaseOptions>(
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
