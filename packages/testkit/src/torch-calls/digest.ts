/** PyTorch's answer to a call in one line: of each tensor its dtype, its shape, and one number that depends on every element. */
import type { DType, Shape } from "@opt/core";
import type { Tolerance } from "../numbers/compare";

/** A tensor as ours or PyTorch's answer has it. */
export interface DigestedTensor {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly values: ArrayLike<number>;
}

const INTEGERS: readonly DType[] = ["i32", "u8", "bool"];
/** What stands for elements that no sum may have. */
const NAN = 17.3;
const INFINITE = 29.1;

/** The sum of all elements, each with a weight of its own: another element, or another order, gives another sum. */
function weightedSum(values: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += weightOf(i) * finite(values[i]!);
  return sum;
}

const weightOf = (i: number) => Math.sin(i + 1);

function finite(value: number): number {
  if (Number.isNaN(value)) return NAN;
  return Number.isFinite(value) ? value : Math.sign(value) * INFINITE;
}

/** For example `f32[2,3]1.25`. */
export function digestOf({ dtype, shape, values }: DigestedTensor): string {
  return `${dtype}[${shape}]${Number(weightedSum(values).toPrecision(dtype === "f64" ? 13 : 9))}`;
}

/** Whether a tensor is the one of this digest, if each element may differ as the tolerance says. */
export function isDigestOf(digest: string, { dtype, shape, values }: DigestedTensor, tolerance: Tolerance): boolean {
  const [, form, number] = /^(\w+\[.*\])(.+)$/.exec(digest) as unknown as [string, string, string];
  if (form !== `${dtype}[${shape}]`) return false;
  const exact = typeof tolerance === "string" || "ulp" in tolerance || INTEGERS.includes(dtype);
  const { absolute, relative } = exact ? { absolute: 0, relative: 0 } : tolerance;
  // Of the digits that are not stored.
  const digits = dtype === "f64" ? 1e-12 : 1e-8;
  let allowed = 0;
  for (let i = 0; i < values.length; i++) {
    const size = Math.abs(finite(values[i]!));
    allowed += Math.abs(weightOf(i)) * (absolute + (relative + digits) * size);
  }
  return Math.abs(weightedSum(values) - Number(number)) <= allowed;
}
