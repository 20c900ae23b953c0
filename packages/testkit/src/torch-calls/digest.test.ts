import { expect, it } from "vitest";
import { type DigestedTensor, digestOf, isDigestOf } from "./digest";

const made = (values: number[], more: Partial<DigestedTensor> = {}): DigestedTensor => ({
  dtype: "f64",
  shape: [values.length],
  values,
  ...more,
});
const near = { absolute: 1e-9, relative: 1e-9 };
const digest = digestOf(made([1, -2, 3.5]));

it("is that of the same numbers, and of others within the tolerance", () => {
  expect(isDigestOf(digest, made([1, -2, 3.5]), near)).toBe(true);
  expect(isDigestOf(digest, made([1 + 1e-10, -2, 3.5]), near)).toBe(true);
});

it.each([
  ["another number", made([1, -2, 3.50001])],
  ["another order", made([1, 3.5, -2])],
  ["another sign", made([1, 2, 3.5])],
  ["another shape", made([1, -2, 3.5], { shape: [3, 1] })],
  ["another dtype", made([1, -2, 3.5], { dtype: "f32" })],
  ["NaN", made([1, -2, Number.NaN])],
  ["an infinity", made([1, -2, Infinity])],
])("is not that of %s", (_, other) => expect(isDigestOf(digest, other, near)).toBe(false));

it("tells NaN and both infinities apart", () => {
  const odd = [Number.NaN, Infinity, -Infinity];
  for (const one of odd) {
    for (const other of odd) {
      expect(isDigestOf(digestOf(made([one])), made([other]), near)).toBe(Object.is(one, other));
    }
  }
});

it("takes no tolerance for integers", () => {
  const whole = made([1, 2], { dtype: "i32" });
  expect(isDigestOf(digestOf(whole), made([1, 2], { dtype: "i32" }), { absolute: 9, relative: 9 })).toBe(true);
  expect(isDigestOf(digestOf(whole), made([1, 3], { dtype: "i32" }), { absolute: 9, relative: 9 })).toBe(false);
});
