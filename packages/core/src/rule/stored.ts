/** How the buffers of a rule that computes in float32 are stored: in float32, in 16 bits that are widened on load and rounded on store, or packed in blocks. */
import { shared } from "../host/shared";
import type { ComputeDType, TypedArray } from "../values/dtype";
import { toStored, widen } from "../values/half";
import type { PackedDType } from "./codebook";
import { interpret } from "./interpret";
import type { Program } from "./program";

/** How an element of a rule that computes in float32 may be stored. */
export type StoredDType = "f32" | "bf16" | "f16";

/** Formats of a rule's first buffer with stochastic rounding to 16 bits. */
export type RandomDType = "bf16r" | "f16r";

/**
 * One for each slice of a tensor: those of the rule's buffers, then perhaps a mirror. It is not read, and takes the new value of the
 * first buffer in a format of its own. Without a list all buffers are of the dtype that the rule computes in, and there is no mirror.
 * With stochastic rounding of the first buffer, two keys of the step come after the scalars of the rule.
 */
export type StoredFormats = readonly (StoredDType | PackedDType | RandomDType)[];

/** An update of arrays in place, as they are stored, by a launch's scalars. `place`: the number of the first element, for stochastic rounding. */
export type UpdateArrays = (buffers: readonly TypedArray[], scalars: readonly number[], place?: number) => void;

/** Formats of blocks, which `enableQ8` brings: who does not use them does not ship them. */
export const packing: Packing = /* @__PURE__ */ shared("packing", () => ({}));

interface Packing {
  /** The update with all formats, from how one is made without packed ones. */
  update?(program: Program, stored: StoredFormats, make: MakeUpdate): UpdateArrays;
}

/** Formats with stochastic rounding, which `enableStochasticRounding` brings. */
export const rounding: Rounding = /* @__PURE__ */ shared("rounding", () => ({}));

interface Rounding {
  /** The update of such formats, from how one of others is made. */
  update?(stored: StoredFormats, make: (stored: StoredFormats) => UpdateArrays): UpdateArrays | undefined;
}

/** Makes the update of arrays that are stored element by element. */
export type MakeUpdate = (stored: readonly StoredDType[] | undefined) => UpdateArrays;

/** The update for these formats. */
export function updateOf(program: Program, stored: StoredFormats | undefined, make: MakeUpdate): UpdateArrays {
  const nearest = (formats: StoredFormats | undefined) =>
    (formats && packing.update?.(program, formats, make)) ?? make(formats as readonly StoredDType[] | undefined);
  return (stored && rounding.update?.(stored, nearest)) ?? nearest(stored);
}

/** The program whose last buffer is the mirror. No buffer of a rule can be called as that. */
export function withMirror(program: Program, stored: StoredFormats | undefined): Program {
  const { buffers, outputs } = program;
  const slot = buffers.length;
  if (stored?.[slot] === undefined) return program;
  const { node } = outputs.find((output) => output.slot === 0)!;
  return { ...program, buffers: [...buffers, "mirror_"], outputs: [...outputs, { slot, node }] };
}

/** A rule's update of whole arrays as they are stored, in place: the reference of the contract suite. */
export function interpretRule(
  program: Program,
  dtype: ComputeDType,
  buffers: readonly TypedArray[],
  scalars: readonly number[],
  stored?: StoredFormats,
  place?: number,
): void {
  updateOf(program, stored, (formats) => interpreted(program, dtype, formats))(buffers, scalars, place);
}

/** The interpreter's update of arrays that are stored element by element. */
export function interpreted(program: Program, dtype: ComputeDType, stored?: readonly StoredDType[]): UpdateArrays {
  return (buffers, scalars) => {
    const values = buffers.map((array, slot) => widen(array, stored?.[slot] ?? dtype));
    const stores = buffers.map((_, slot) => toStored(stored?.[slot] ?? dtype));
    const store = (slot: number, i: number, value: number) => {
      buffers[slot]![i] = stores[slot]!(value);
    };
    interpret(withMirror(program, stored), dtype, values, scalars, store, 0, buffers[0]!.length);
  };
}
