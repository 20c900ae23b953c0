/** What comes before a step is planned: missing state is made, and master weights follow their parameters. */
import { arena, full } from "../create";
import type { Device } from "../device/device";
import { keep, tidy } from "../device/scope";
import { copyInto, fillInPlace } from "../ops";
import { checkFloat64 } from "../ops/check-tensor";
import type { PackedDType } from "../rule/codebook";
import type { Rule } from "../rule/rule";
import type { SparseGradient, Tensor } from "../tensor/tensor";
import type { DType } from "../values/dtype";
import type { Shape } from "../values/shape";
import type { Algorithm, BaseOptions, GroupOptions } from "./algorithm";
import type { Regularizer } from "./gradients/regularizer";
import type { ParameterGroup } from "./group";
import { hasMaster, syncMasters } from "./state/master";
import { is16Bit, MASTER, type Slot, stateKeys, statePacking, stateShapes, storedState } from "./state/state";

/** A parameter that steps. It has its state. */
export interface PreparedParameter {
  readonly slot: Slot;
  /** The numbers of the gradient. */
  readonly gradient: Tensor;
  /** The row-sparse gradient of a lazy step, which reaches no other rows. */
  readonly rows: SparseGradient | undefined;
  readonly penalty: Regularizer | null;
  /** Stepped by stochastic rounding, without master weights. */
  readonly isStochastic: boolean;
}

/**
 * The parameters of each group that have a gradient, ready to be planned. `made`: some of them had no state before.
 *
 * @throws OptError DISPOSED, OUT_OF_MEMORY; what the algorithm says of a gradient
 */
export function prepare<Options extends BaseOptions>(
  algorithm: Algorithm<Options>,
  groups: readonly ParameterGroup<Options>[],
): { parameters: PreparedParameter[][]; made: boolean } {
  const present = groups.map(({ slots }) => slots.filter((slot) => hasGradient(algorithm, slot)));
  const made = completeState(
    algorithm,
    groups.map(({ rule, options }, g) => ({ slots: present[g]!, rule, options })),
  );
  for (const slots of present) syncMasters(slots.filter(hasMaster));
  return { parameters: groups.map((group, g) => present[g]!.map((slot) => preparedParameter(group, slot))), made };
}

/** The shape and dtype of the gradient were checked when it was set. @throws OptError DISPOSED, UNSUPPORTED, or as the algorithm's `checkGradient` */
function hasGradient<Options extends BaseOptions>(algorithm: Algorithm<Options>, slot: Slot): boolean {
  slot.param.checkAlive();
  const { grad, dtype, device } = slot.param;
  if (grad === null) return false;
  checkFloat64(algorithm.name, dtype, device);
  grad.checkAlive();
  algorithm.checkGradient?.(slot.name, grad);
  return true;
}

/** A row-sparse gradient comes as its rows if it is stepped lazily, else in a dense copy of this step. */
function preparedParameter<Options extends BaseOptions>(group: ParameterGroup<Options>, slot: Slot): PreparedParameter {
  const { lazyMode, stochasticRounding } = group.options;
  const grad = slot.param.grad!;
  const rows = lazyMode ? grad.sparse : undefined;
  return {
    slot,
    gradient: grad.sparse?.numbers(rows !== undefined) ?? grad,
    rows,
    penalty: group.penaltyOf(slot),
    isStochastic: Boolean(stochasticRounding) && is16Bit(slot.param) && !hasMaster(slot),
  };
}

/** Parameters of a group, with what their state depends on. */
interface GroupState<Options> {
  readonly slots: readonly Slot[];
  readonly rule: Rule;
  readonly options: Options & GroupOptions;
}

/** A state tensor that is yet to be assigned. */
interface NewState {
  readonly slot: Slot;
  readonly key: string;
  readonly tensor: Tensor;
}

/**
 * Gives every parameter the state it lacks, and master weights. True if one did.
 * All of it is allocated before the first state changes, so that running out of memory loses nothing.
 */
export function completeState<Options extends BaseOptions>(
  algorithm: Algorithm<Options>,
  groups: readonly GroupState<Options>[],
  withMasters = true,
): boolean {
  const made = groups.flatMap((group) => missingState(algorithm, group, withMasters));
  const fresh = groups.flatMap(({ slots }) => slots.filter(({ state }) => state === null));
  const counter = { counters: algorithm.initialCounters, users: fresh.length };
  for (const slot of fresh) slot.state = { counter, tensors: new Map(), masterVersion: -1, isRenewed: false };
  for (const { slot, key, tensor } of made) {
    const { tensors } = slot.state!;
    tensors.set(key, keep(tensor));
    if (key === MASTER) slot.state!.masterVersion = slot.param.storage.version;
  }
  return made.length > 0 || fresh.length > 0;
}

/** Missing tensors in one block of memory for each device and dtype. All tensors of a key are contiguous, so that a launch walks on in each buffer. */
function missingState<Options extends BaseOptions>(
  algorithm: Algorithm<Options>,
  { slots, rule, options }: GroupState<Options>,
  withMasters: boolean,
): NewState[] {
  const first = algorithm.initialState?.(options) ?? {};
  const blocks: { device: Device; dtype: DType | PackedDType; wanted: { slot: Slot; key: string; shape: Shape }[] }[] =
    [];
  const want = (slot: Slot, key: string, shape: Shape) => {
    const { param, state } = slot;
    if (state?.tensors.has(key)) return;
    const dtype = storedState(rule, key, param, options, first);
    let block = blocks.find((known) => known.device === param.device && known.dtype === dtype);
    if (block === undefined) {
      block = { device: param.device, dtype, wanted: [] };
      blocks.push(block);
    }
    block.wanted.push({ slot, key, shape });
  };
  for (const key of stateKeys(rule)) for (const slot of slots) want(slot, key, slot.param.shape);
  for (const slot of slots) {
    for (const [key, own] of Object.entries(stateShapes(algorithm, rule, slot, options)))
      if (!stateKeys(rule).includes(key)) want(slot, key, own);
    if (withMasters && !options.stochasticRounding && is16Bit(slot.param)) want(slot, MASTER, slot.param.shape);
  }
  return blocks.flatMap(({ device, dtype, wanted }) => {
    const runs: Shape[][] = [];
    wanted.forEach(({ key, shape }, i) => {
      if (key === wanted[i - 1]?.key) runs.at(-1)!.push(shape);
      else runs.push([shape]);
    });
    const tensors = statePacking.zeros?.(runs, dtype, device) ?? arena(runs, dtype as DType, device);
    return wanted.map(({ slot, key }, i) => {
      const tensor = tensors[i]!;
      const value = key === MASTER ? "param" : first[key];
      if (value === "param") copyInto(slot.param, tensor);
      else if (value) fillState(tensor, value);
      return { slot, key, tensor };
    });
  });
}

/** Sets each number of a state tensor: both parts of complex ones, and packed ones too. */
function fillState(tensor: Tensor, value: number): void {
  const { packed, device, dtype, size } = tensor;
  tidy(() => {
    if (packed !== undefined) packed.pack(full(packed.shape, value, { device }));
    else fillInPlace(dtype === "c64" ? tensor.alias([2 * size], 0, "f32") : tensor, value);
  });
}
