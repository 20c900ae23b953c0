/** What it means that two arrays of numbers agree, and one message that says how they do not. */
import { type FloatFormat, hexadecimal, ulpDistance } from "./ulp";

/**
 * "bits": every word equal (any NaN equals any NaN, +0 differs from -0). ulp: at most so many representable values apart.
 * absolute, relative: |actual - expected| <= absolute + relative * |expected|. NaN always needs NaN, and infinity itself.
 */
export type Tolerance = "bits" | { readonly ulp: number } | { readonly absolute: number; readonly relative: number };

export type Numbers = number | ArrayLike<number>;

export interface Comparison {
  readonly agrees: boolean;
  readonly message: string;
  /** Elements outside of the tolerance. */
  readonly differing: number;
}

/** Compares in the format of `actual`: a float64 reference of a float32 result is rounded first, except under an absolute tolerance. */
export function compareNumbers(actual: Numbers, expected: Numbers, tolerance: Tolerance): Comparison {
  const ours = typeof actual === "number" ? [actual] : actual;
  const theirs = typeof expected === "number" ? [expected] : expected;
  if (ours.length !== theirs.length) {
    return { agrees: false, differing: Number.NaN, message: `expected ${theirs.length} numbers, got ${ours.length}` };
  }
  const format: FloatFormat = ours instanceof Float32Array ? "f32" : "f64";
  const round = format === "f32" && typeof tolerance !== "string" && "absolute" in tolerance ? identity : rounder(ours);
  let differing = 0;
  let first = -1;
  let worst = -1;
  let largest = 0;
  for (let i = 0; i < ours.length; i++) {
    const a = ours[i]!;
    const b = round(theirs[i]!);
    if (agrees(a, b, tolerance, format)) continue;
    if (differing++ === 0) first = i;
    const difference = Math.abs(a - b);
    if (worst < 0 || difference > largest) {
      worst = i;
      largest = difference;
    }
  }
  const describe = (i: number) => describePair(ours[i]!, round(theirs[i]!), format);
  const lines = [`${differing} of ${ours.length} words differ (tolerance: ${describeTolerance(tolerance)})`];
  if (first >= 0) lines.push(`first at [${first}]: ${describe(first)}`);
  if (worst !== first) lines.push(`worst at [${worst}]: ${describe(worst)}`);
  return { agrees: differing === 0, differing, message: lines.join("\n") };
}

const identity = (x: number) => x;

/** Rounds a reference to the element type of the result. */
function rounder(array: ArrayLike<number>): (x: number) => number {
  return array instanceof Float32Array ? Math.fround : identity;
}

function agrees(a: number, b: number, tolerance: Tolerance, format: FloatFormat): boolean {
  if (Object.is(a, b)) return true;
  if (tolerance === "bits") return false;
  if ("ulp" in tolerance) return ulpDistance(a, b, format) <= tolerance.ulp;
  if (!Number.isFinite(a) || !Number.isFinite(b)) return false;
  return Math.abs(a - b) <= tolerance.absolute + tolerance.relative * Math.abs(b);
}

function describePair(a: number, b: number, format: FloatFormat): string {
  const show = (x: number) => `${Object.is(x, -0) ? "-0" : x} (${hexadecimal(x, format)})`;
  return `actual ${show(a)}, expected ${show(b)}, ${ulpDistance(a, b, format)} ulp apart`;
}

function describeTolerance(tolerance: Tolerance): string {
  if (tolerance === "bits") return "bits";
  if ("ulp" in tolerance) return `${tolerance.ulp} ulp`;
  return `${tolerance.absolute} + ${tolerance.relative} |expected|`;
}
