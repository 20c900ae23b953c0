/** When two observations agree. */
import type { DType } from "@opt/core";
import { compareNumbers } from "../numbers/compare";
import { EPSILON, isFloat } from "./numbers";
import type { Observation, ObservedValue } from "./observe";

/** The first name whose bits differ, described; null if all are equal. */
export function bitDifference(actual: Observation, expected: Observation): string | null {
  return firstDifference(actual, expected, (_name, a, b) => {
    if (typeof a === "string" || typeof b === "string") return a === b ? null : `${a} is not ${b}`;
    return isSame(a.data, b.data) ? null : compareNumbers(a.data, b.data, "bits").message;
  });
}

function isSame(a: ArrayLike<number>, b: ArrayLike<number>): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (!Object.is(a[i], b[i])) return false;
  return true;
}

/** Rounding errors that a program may collect, in units of its coarsest dtype at the size of the numbers. */
const UNITS = 16;

/** What rounding may do to a program: how far runs from slightly other numbers are apart, and its coarsest dtype. */
export interface Spread {
  /** The first as it stands, the others from leaves moved by a unit in the last place. */
  readonly runs: readonly Observation[];
  /** What the reference was in earlier rounds: averages are as exact as what they were made from. */
  readonly before?: readonly Observation[];
  readonly epsilon: number;
  /** Times the largest distance. */
  readonly factor: number;
  /** What is lost at the size of 1, whatever the size of the result: log(sum(exp(x))) - x and its like cancel. */
  readonly floor: number;
  /** What gradients are multiplied by until the scaler takes it off, and what is lost of them with them. */
  readonly scaled: number;
  /** Some of it is f16, which ends at 65504. */
  readonly short?: boolean;
  /** NaN and infinities count too. */
  readonly special?: boolean;
}

export function coarsest(dtypes: Iterable<DType>): number {
  return Math.max(...[...dtypes].map((dtype) => EPSILON[dtype]));
}

/** The first name whose numbers are further from the reference than rounding explains. */
export function distance(
  actual: Observation,
  reference: Observation,
  { runs, before = [], epsilon, factor, floor, scaled, short, special }: Spread,
): string | null {
  return firstDifference(actual, reference, (name, a, b) => {
    if (typeof a === "string" || typeof b === "string") return a === b ? null : `${a} is not ${b}`;
    if (!isFloat(a.dtype)) return isSame(a.data, b.data) ? null : `other ${a.dtype}`;
    const [still, ...moved] = runs
      .map((run) => run.get(name))
      .filter((seen) => seen !== undefined && typeof seen !== "string");
    let scale = 0;
    let spread = 0;
    for (let i = 0; i < b.data.length; i++) {
      const x = b.data[i]!;
      if (!Number.isFinite(x)) continue;
      scale = Math.max(scale, Math.abs(x));
      for (const { data } of moved) spread = Math.max(spread, Math.abs(data[i]! - still!.data[i]!) || 0);
    }
    for (const seen of before.map((round) => round.get(name))) {
      if (seen === undefined || typeof seen === "string") continue;
      for (let i = 0; i < seen.data.length; i++) {
        if (Number.isFinite(seen.data[i])) scale = Math.max(scale, Math.abs(seen.data[i]!));
      }
    }
    const lost = floor * (name.endsWith(".grad") ? scaled : 1);
    const tolerance = factor * spread + UNITS * epsilon * scale + lost + epsilon * epsilon;
    for (let i = 0; i < b.data.length; i++) {
      const [x, y] = [a.data[i]!, b.data[i]!];
      if (special && Object.is(x, y)) continue;
      if (!special && (!Number.isFinite(y) || (short && !Number.isFinite(x)))) continue;
      if (!(Math.abs(x - y) <= tolerance)) return `[${i}] is ${x}, must be ${y} within ${tolerance}`;
    }
    return null;
  });
}

/** True if numbers have grown to where float32 ends soon and float64 goes on. */
export function isOutgrown(observation: Observation): boolean {
  for (const seen of observation.values()) {
    if (typeof seen === "string" || seen.dtype === "i32") continue;
    for (let i = 0; i < seen.data.length; i++) if (Math.abs(seen.data[i]!) > 2 ** 100) return true;
  }
  return false;
}

function firstDifference(
  actual: Observation,
  expected: Observation,
  differs: (name: string, a: ObservedValue, b: ObservedValue) => string | null,
): string | null {
  for (const name of new Set([...expected.keys(), ...actual.keys()])) {
    const [a, b] = [actual.get(name), expected.get(name)];
    // f64 needs no master copy; where there is no other state, nor does anything count steps.
    const master = name.replace(/step$/, "master_param");
    if (master.endsWith(".master_param") && actual.has(master) !== expected.has(master)) {
      if (a === undefined || b === undefined) continue;
    }
    if (a === undefined || b === undefined) return `${name} is ${a === undefined ? "missing" : "there"}`;
    const difference = differs(name, a, b);
    if (difference !== null) return `${name}: ${difference}`;
  }
  return null;
}
