import { adamRule } from "@opt/adam-amsgrad/rules";
import { nadamRule } from "@opt/nadam/rules";
import { builtRules, everyOp } from "@opt/testkit/built-rules";
import { describe, expect, it } from "vitest";
import { cuda } from "./dialect";
import { builtMaps } from "./maps";
import { writeMap, writeRule, writeRules } from "./write-kernels";

describe("generated CUDA", () => {
  it.each([
    adamRule({ amsgrad: true, decay: "decoupled", smallBeta1: false }),
    nadamRule({ decay: "l2", smallBeta1: true }),
    everyOp,
  ])("of $name reads as hand-written", (rule) => {
    expect(writeRule(rule, "f32")).toMatchSnapshot();
    expect(writeRule(rule, "f64")).toMatchSnapshot();
  });

  it("of a map returns its result", () => {
    expect(writeMap(builtMaps.at(-5)!, "f32", "map_scaled_sum")).toMatchSnapshot();
  });

  it("has four kernels for rules that compute the same, one a form", () => {
    expect(writeRules([everyOp, { ...everyOp, name: "twin" }]).match(/__global__/g)).toHaveLength(4);
    expect(builtRules.length).toBeGreaterThan(30);
  });

  it("rounds nothing by an operator: + - * / stand in no kernel", () => {
    for (const rule of builtRules)
      expect(writeRule(rule, "f32").split("[=]")[1]).not.toMatch(/[a-z0-9)] [-+*/] [a-z0-9(]/i);
  });
});

it.each([
  [1, "1.0f", "1.0"],
  [-2.5, "(-2.5f)", "(-2.5)"],
  [0.1, "0.10000000149011612f", "0.1"],
  [1e30, "1.0000000150474662e+30f", "1e+30"],
  [-0, "(-0.0f)", "(-0.0)"],
  [Number.POSITIVE_INFINITY, "__int_as_float(0x7f800000)", "__longlong_as_double(0x7ff0000000000000ll)"],
  [Number.NEGATIVE_INFINITY, "(-__int_as_float(0x7f800000))", "(-__longlong_as_double(0x7ff0000000000000ll))"],
  [Number.NaN, "__int_as_float(0x7fc00000)", "__longlong_as_double(0x7ff8000000000000ll)"],
])("writes %d as %s and %s", (value, f32, f64) => {
  expect(cuda.constant(value, "f32")).toBe(f32);
  expect(cuda.constant(value, "f64")).toBe(f64);
});
