/** The codes of packed state as native code reads them (native/cpu/src/kernels/rules/codec.h). */
import { type CodedDType, codebookOf, LEAST_SCALE } from "@opt/core/backend";
import type { Addon } from "./addon";

function numbersOf(format: CodedDType): Float32Array {
  const { edges, slope, offset, cap, step, start, values } = codebookOf(format);
  const numbers = [edges, slope, offset, cap, step, start, values].flatMap((part) => [...part]);
  return Float32Array.from([...numbers, LEAST_SCALE]);
}

/** Kept, because native code reads them in place. */
let known: readonly Float32Array[] | undefined;

/** Where those of q8 and of uq8 lie. */
export function codebookAddresses(addon: Addon): readonly number[] {
  known ??= [numbersOf("q8"), numbersOf("uq8")];
  return known.map((numbers) => addon.address(numbers));
}
