import { describe, expect, it } from "vitest";
import { compareNumbers, type Tolerance } from "./compare";
import "./matcher";

const f32 = (...values: number[]) => Float32Array.from(values);
const f64 = (...values: number[]) => Float64Array.from(values);

describe("compareNumbers", () => {
  it.each<[string, number[], number[], Tolerance, boolean]>([
    ["NaN equals NaN", [Number.NaN], [Number.NaN], "bits", true],
    ["zeros differ in bits", [0], [-0], "bits", false],
    ["zeros are 0 ulp apart", [0], [-0], { ulp: 0 }, true],
    ["neighbours differ in bits", [1], [1 + 2 ** -23], "bits", false],
    ["neighbours are 1 ulp apart", [1], [1 + 2 ** -23], { ulp: 1 }, true],
    ["two steps are not one", [1], [1 + 2 ** -22], { ulp: 1 }, false],
    ["subnormals of both signs", [2 ** -149], [-(2 ** -149)], { ulp: 2 }, true],
    ["infinity is next to the largest value", [2 ** 128], [2 ** 128 - 2 ** 104], { ulp: 1 }, true],
    ["NaN is near nothing", [Number.NaN], [1], { ulp: 1e9 }, false],
    ["absolute", [1e-7], [0], { absolute: 1e-6, relative: 0 }, true],
    ["relative to the expected", [99], [100], { absolute: 0, relative: 0.01 }, true],
    ["infinity needs infinity", [2 ** 128], [1e38], { absolute: 1e300, relative: 1 }, false],
    [
      "infinity has a sign",
      [Number.POSITIVE_INFINITY],
      [Number.NEGATIVE_INFINITY],
      { absolute: 9, relative: 9 },
      false,
    ],
    ["lengths", [1], [1, 1], "bits", false],
  ])("%s", (_name, actual, expected, tolerance, agrees) => {
    expect(compareNumbers(f32(...actual), f32(...expected), tolerance).agrees).toBe(agrees);
  });

  it("rounds a float64 reference to the result's float32", () => {
    expect(f32(0.1)).toAgreeWith(f64(0.1));
    expect(f64(0.1)).not.toAgreeWith(f32(0.1));
  });

  it("says how many differ, where first, both values, their words and distance", () => {
    const { message, differing } = compareNumbers(f32(1, 2, 3), f32(1, 2 + 2 ** -22, 4), "bits");
    expect(differing).toBe(2);
    expect(message).toBe(
      [
        "2 of 3 words differ (tolerance: bits)",
        "first at [1]: actual 2 (0x40000000), expected 2.000000238418579 (0x40000001), 1 ulp apart",
        "worst at [2]: actual 3 (0x40400000), expected 4 (0x40800000), 4194304 ulp apart",
      ].join("\n"),
    );
  });

  it("shows float64 words", () => {
    const { message } = compareNumbers(f64(-0), f64(0), "bits");
    expect(message).toContain("actual -0 (0x8000000000000000), expected 0 (0x0000000000000000), 0 ulp apart");
  });

  it("fails a test through the matcher", () => {
    expect(() => expect(f32(1)).toAgreeWith([2])).toThrow("1 of 1 words differ");
    expect(() => expect("text").toAgreeWith([2])).toThrow("expected a number");
  });
});
