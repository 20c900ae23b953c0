/** Limits of float dtypes, as torch.finfo has them. */
import { type DType, significantBits } from "./dtype";

/** The distance from 1 to the next larger number. */
export const epsilonOf = (dtype: DType): number => 2 ** (1 - (significantBits(dtype) ?? 24));

/** The smallest positive normal number. */
export function tiniestOf(dtype: DType): number {
  return 2 ** (dtype === "f64" ? -1022 : dtype === "f16" ? -14 : -126);
}

/** The largest finite number. */
export function largestOf(dtype: DType): number {
  if (dtype === "f16") return 65504;
  return dtype === "f64" ? Number.MAX_VALUE : (2 - epsilonOf(dtype)) * 2 ** 127;
}
