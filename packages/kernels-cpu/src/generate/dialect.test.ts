import { expect, it } from "vitest";
import { cpp } from "./dialect";

it.each([
  [1, "T(1.0)"],
  [-2.5, "T(-2.5)"],
  [1e-30, "T(1e-30)"],
  [1e21, "T(1e+21)"],
  [-0, "T(-0.0)"],
  [Number.POSITIVE_INFINITY, "T(INFINITY)"],
  [Number.NEGATIVE_INFINITY, "T(-INFINITY)"],
  [Number.NaN, "T(NAN)"],
])("writes %d as %s", (value, text) => {
  expect(cpp.constant(value, "f64")).toBe(text);
});
