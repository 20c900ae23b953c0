/** Per-parameter optimizer state. */
import type { Device } from "../../device/device";
import type { PackedDType } from "../../rule/codebook";
import type { Rule } from "../../rule/rule";
import { packing, rounding, type StoredDType, type StoredFormats } from "../../rule/stored";
import type { Tensor } from "../../tensor/tensor";
import { byteSize, type ComputeDType, type DType, numbersOf } from "../../values/dtype";
import type { Shape } from "../../values/shape";
import type { Counters, GroupOptions } from "../algorithm";

/** The state dict's name of the float32 copy that 16-bit parameters are trained in. */
export const MASTER = "master_param";

/** What a rule that comes after stages calls its last buffer. */
export const DIRECTION = "direction";

/** True if the last buffer is what stages compute before the launch. What a rule writes is state, whatever its name. */
export function hasDirection({ buffers, writes }: Rule): boolean {
  return buffers.at(-1) === DIRECTION && !writes.includes(DIRECTION);
}

export interface ParameterState {
  /** Parameters with equal counters share the object: they step in one launch. */
  counters: Counters;
  /** By snake_case name: exp_avg, exp_avg_sq, ... and master_param for 16-bit parameters. */
  readonly tensors: Map<string, Tensor>;
}

/** expAvgSq -> exp_avg_sq: PyTorch's key of a rule's buffer. */
export function stateKey(buffer: string): string {
  return buffer.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

const keysOfRules = new WeakMap<Rule, readonly string[]>();

/** The state buffers of a rule under their names in state dicts; one list for each rule. */
export function stateKeys(rule: Rule): readonly string[] {
  let keys = keysOfRules.get(rule);
  if (keys === undefined) {
    keys = rule.buffers.slice(2, hasDirection(rule) ? -1 : undefined).map(stateKey);
    keysOfRules.set(rule, keys);
  }
  return keys;
}

/** True for parameters that are stepped in a float32 copy. */
export function is16Bit({ dtype }: Tensor): boolean {
  return byteSize(dtype) === 2;
}

/** State that is packed in blocks: what `enableQ8` brings. */
export interface StatePacking {
  /** The value of the option `stateDType`. */
  readonly name: "q8";
  /** The format of a key's state. */
  format(rule: Rule, key: string, param: Tensor): "f32" | PackedDType;
  /** Zeros in one block of memory; undefined for formats that are not packed. */
  zeros(shapes: readonly Shape[], format: DType | PackedDType, device: Device): Tensor[] | undefined;
  pack(values: Tensor, format: DType | PackedDType): Tensor | undefined;
  /** @throws OptError UNSUPPORTED for what does not go with it */
  check(where: string, options: GroupOptions): void;
}

export const statePacking = packing as typeof packing & Partial<StatePacking>;

/** Parameters rounded at random: what `enableStochasticRounding` brings. */
export interface StochasticRounding {
  /** @throws OptError BAD_ARGUMENT naming what is wrong with a seed */
  fits(where: string, option: unknown): boolean;
  /** The last scalars of a launch. @throws OptError UNSUPPORTED where the device cannot */
  keys(option: GroupOptions["stochasticRounding"], step: number, device: Device): readonly number[];
}

export const stochasticRounding = rounding as typeof rounding & Partial<StochasticRounding>;

/** How the state of a key is stored: as the parameter where that is float64 or complex, else as the option `stateDType` says. */
export function storedState(
  rule: Rule,
  key: string,
  param: Tensor,
  { stateDType = "f32" }: GroupOptions,
): "f32" | "f64" | "bf16" | "c64" | PackedDType {
  if (param.dtype === "f64" || param.dtype === "c64") return param.dtype;
  return stateDType === "q8" ? statePacking.format!(rule, key, param) : stateDType;
}

/**
 * How a rule's launch finds a parameter with this state: 16-bit ones come as their master copy, which the parameter mirrors, or as they are
 * to be rounded at random; and their gradient as it is.
 */
export function formatsOf(
  rule: Rule,
  param: Tensor,
  state: ParameterState,
  isDrawn: boolean,
): { dtype: ComputeDType; stored?: StoredFormats } {
  const [dtype] = numbersOf(param.dtype);
  const states = rule.buffers.slice(2).map((buffer) => {
    const tensor = state.tensors.get(stateKey(buffer));
    return tensor?.packed?.format ?? (numbersOf(tensor?.dtype ?? "f32")[0] as StoredDType);
  });
  if (dtype === "f64" || (dtype === "f32" && states.every((each) => each === "f32"))) return { dtype };
  const narrow = dtype as StoredDType;
  if (isDrawn) return { dtype: "f32", stored: [`${narrow as "bf16"}r`, narrow, ...states] };
  return { dtype: "f32", stored: ["f32", narrow, ...states, ...(dtype === "f32" ? [] : [narrow])] };
}
