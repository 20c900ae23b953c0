/** What an optimizer stores for each parameter: tensors and counters. */
import type { Device } from "../../device/device";
import { isOwner, type Owner } from "../../placement/owners";
import type { PackedDType } from "../../rule/codebook";
import type { Rule } from "../../rule/rule";
import { packing, rounding, type StoredDType, type StoredFormats } from "../../rule/stored";
import type { Tensor } from "../../tensor/tensor";
import { byteSize, type ComputeDType, type DType, numbersOf } from "../../values/dtype";
import { type Shape, sameShape } from "../../values/shape";
import type { Algorithm, BaseOptions, Counters, GroupOptions, InitialState } from "../algorithm";

/** The key of the master weights, a float32 copy of a 16-bit parameter. */
export const MASTER = "master_param";

/** The last buffer of a rule that comes after stages. */
export const DIRECTION = "direction";

/** True if the last buffer is what stages compute before the launch. A rule does not write it; else it would be state. */
export function hasDirection({ buffers, writes }: Rule): boolean {
  return buffers.at(-1) === DIRECTION && !writes.includes(DIRECTION);
}

/** Step counters of the parameters that step in one launch: one assignment counts for all of them. */
export interface StepCounter {
  counters: Counters;
  /** How many parameters share it. */
  users: number;
}

export interface ParameterState {
  counter: StepCounter;
  /** By snake_case name: exp_avg, exp_avg_sq, ..., and master_param for 16-bit parameters. */
  readonly tensors: Map<string, Tensor>;
  /** The version of the parameter that the master weights agree with; -1 if unknown. */
  masterVersion: number;
  /** True once `renewState` has changed it, before a first step perhaps. */
  isRenewed: boolean;
}

/** A parameter in its group. */
export interface Slot {
  readonly param: Tensor;
  readonly name: string;
  /** Its place among the parameters of the optimizer. */
  readonly number: number;
  /** The rank that computes with the whole parameter; null where every rank has it. */
  readonly owner: Owner | null;
  state: ParameterState | null;
}

/** expAvgSq -> exp_avg_sq: PyTorch's key of a rule's buffer. */
export function stateKey(buffer: string): string {
  return buffer.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

const keysOfRules = new WeakMap<Rule, readonly string[]>();

/** The keys of a rule's state buffers; one list for each rule. */
export function stateKeys(rule: Rule): readonly string[] {
  let keys = keysOfRules.get(rule);
  if (keys === undefined) {
    keys = rule.buffers.slice(2, hasDirection(rule) ? -1 : undefined).map(stateKey);
    keysOfRules.set(rule, keys);
  }
  return keys;
}

/**
 * The shapes of a parameter's state tensors, by key: its own for the rule's buffers, others for what stages renew. Where ranks have parts
 * of the parameter, state of its shape is divided as it is, and the other state of its stages is that of its owner.
 */
export function stateShapes<Options extends BaseOptions>(
  algorithm: Pick<Algorithm<Options>, "stageState">,
  rule: Rule,
  slot: Slot,
  options: Options,
): Readonly<Record<string, Shape>> {
  const { shape, placement } = slot.param;
  const whole = wholeShape(slot.param);
  const isHere = isOwner(placement, slot.owner);
  const ofStages = Object.entries(algorithm.stageState?.(whole, options) ?? {}).flatMap(([key, own]) =>
    sameShape(own, whole) ? [[key, shape] as const] : isHere || isOfModification(key) ? [[key, own] as const] : [],
  );
  return Object.fromEntries([...stateKeys(rule).map((key) => [key, shape] as const), ...ofStages]);
}

/** The keys of stages' state that is divided as the parameter is, where ranks have parts of it. */
export function dividedStageState<Options extends BaseOptions>(
  { stageState }: Pick<Algorithm<Options>, "stageState">,
  { param }: Slot,
  options: Options,
): string[] {
  const whole = wholeShape(param);
  const ofStages = param.placement ? Object.entries(stageState?.(whole, options) ?? {}) : [];
  return ofStages.flatMap(([key, own]) => (sameShape(own, whole) && !isOfModification(key) ? [key] : []));
}

/** The shape of the whole parameter, where ranks have parts of it: what stages compute with. */
export const wholeShape = ({ shape, placement }: Tensor): Shape => placement?.shape ?? shape;

export function is16Bit({ dtype }: Tensor): boolean {
  return byteSize(dtype) === 2;
}

type PackedName = "q8" | "bf16x";

/** State that is packed in blocks: `enableQ8` installs it. */
export interface StatePacking {
  /** The values of the option `stateDType`. */
  readonly names: readonly PackedName[];
  /** The format of a key's state. */
  format(rule: Rule, key: string, param: Tensor, name: PackedName): "f32" | PackedDType;
  /** Zeros in one block of memory, as `arena`; undefined for formats that are not packed. */
  zeros(runs: readonly (readonly Shape[])[], format: DType | PackedDType, device: Device): Tensor[] | undefined;
  pack(values: Tensor, format: DType | PackedDType): Tensor | undefined;
  /** @throws OptError UNSUPPORTED for options that do not go with it */
  check(where: string, options: GroupOptions): void;
}

export const statePacking = packing as typeof packing & Partial<StatePacking>;

/** Stochastic rounding of parameters: `enableStochasticRounding` installs it. */
export interface StochasticRounding {
  /** @throws OptError BAD_ARGUMENT naming what is wrong with a seed */
  fits(where: string, option: unknown): boolean;
  /** The last scalars of a launch. @throws OptError UNSUPPORTED on devices without it */
  keys(option: GroupOptions["stochasticRounding"], step: number, device: Device): readonly number[];
}

export const stochasticRounding = rounding as typeof rounding & Partial<StochasticRounding>;

/** State of modifications, which `mars` and `hyperball` compute with as it is. */
export const LAST_GRAD = "last_grad";
export const RADIUS = "radius";
const isOfModification = (key: string): boolean => key === LAST_GRAD || key === RADIUS;

/** How new state is stored: as its parameter if that is float64 or complex, weights in float32, else as the option `stateDType` says. */
export function storedState(
  rule: Rule,
  key: string,
  param: Tensor,
  { stateDType = "f32" }: GroupOptions,
  first: InitialState = {},
): "f32" | "f64" | "bf16" | "c64" | PackedDType {
  if (key === MASTER) return "f32";
  if (param.dtype === "f64" || param.dtype === "c64") return param.dtype;
  if (first[key] === "param" || isOfModification(key)) return "f32";
  return stateDType === "f32" || stateDType === "bf16"
    ? stateDType
    : statePacking.format!(rule, key, param, stateDType);
}

/** How a state tensor is stored. */
export function storedFormat(tensor: Tensor): StoredFormats[number] {
  return tensor.packed?.format ?? (numbersOf(tensor.dtype)[0] as StoredDType);
}

/**
 * The formats of a parameter's buffers. Gradients come as they are. A 16-bit parameter comes as its master weights, which it mirrors;
 * with stochastic rounding it comes itself.
 */
export function formatsOf(
  rule: Rule,
  param: Tensor,
  state: ParameterState,
  isStochastic: boolean,
): { dtype: ComputeDType; stored?: StoredFormats } {
  const [dtype] = numbersOf(param.dtype);
  const states = rule.buffers.slice(2).map((buffer) => {
    const tensor = state.tensors.get(stateKey(buffer));
    return tensor === undefined ? "f32" : storedFormat(tensor);
  });
  if (dtype === "f64" || (dtype === "f32" && states.every((each) => each === "f32"))) return { dtype };
  const narrow = dtype as StoredDType;
  if (isStochastic) return { dtype: "f32", stored: [`${narrow as "bf16"}r`, narrow, ...states] };
  return { dtype: "f32", stored: ["f32", narrow, ...states, ...(dtype === "f32" ? [] : [narrow])] };
}
