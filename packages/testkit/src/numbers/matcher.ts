/** `expect(actual).toAgreeWith(expected, tolerance)`: the one matcher for numbers. Importing this file registers it. */
import { expect } from "vitest";
import { compareNumbers, type Numbers, type Tolerance } from "./compare";

declare module "vitest" {
  // biome-ignore lint/suspicious/noExplicitAny: vitest declares this parameter so, and declarations must be identical
  interface Matchers<T = any> {
    /** The numbers agree within the tolerance, bit for bit if none is given. */
    toAgreeWith(expected: Numbers, tolerance?: Tolerance): T;
  }
}

expect.extend({
  toAgreeWith(actual: unknown, expected: Numbers, tolerance: Tolerance = "bits") {
    if (!isNumbers(actual)) {
      return { pass: false, message: () => `expected a number or an array of numbers, got ${typeof actual}` };
    }
    const { agrees, message } = compareNumbers(actual, expected, tolerance);
    return { pass: agrees, message: () => (agrees ? `the numbers agree: ${message}` : message) };
  },
});

function isNumbers(value: unknown): value is Numbers {
  return typeof value === "number" || Array.isArray(value) || (ArrayBuffer.isView(value) && "length" in value);
}
