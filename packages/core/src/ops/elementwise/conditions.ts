/** Conditions on numbers that may be NaN or 0, as expressions. */
import type { Expression } from "../../rule/expression";
import { less, minimum, where } from "../../rule/symbols";

type E = Expression;

/** `value`, but NaN where b is NaN (the rule op max lets only its first operand's NaN through). */
export const nanOf = (b: E, value: E) => where(less(b, 1), value, where(less(0, b), value, b));

/** One of two where x is a number, and `no` where it is NaN. */
export const ifNumber = (x: E, yes: E | number, no: E | number) => where(less(minimum(x, 1), 2), yes, no);
/** Where neither is less: equal, or one is NaN. */
export const ifEqual = (a: E, b: E, yes: E | number, no: E | number) =>
  where(less(a, b), no, where(less(b, a), no, ifNumber(a, ifNumber(b, yes, no), no)));
/** a <= b, which NaN never is. */
export const ifAtMost = (a: E, b: E, yes: E | number, no: E | number) => where(less(a, b), yes, ifEqual(a, b, yes, no));

/** 0 without a slope where x is 0, and NaN where it is NaN. */
export const zeroOrNaN = (x: E) => where(less(x, 1), 0, x);

export const ifZero = (x: E, yes: E | number, no: E | number) => where(less(x, 0), no, where(less(0, x), no, yes));
