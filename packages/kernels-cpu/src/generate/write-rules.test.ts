import { adamRule } from "@opt/adam-amsgrad/rules";
import { nadamRule } from "@opt/nadam/rules";
import { builtRules, everyOp } from "@opt/testkit/built-rules";
import { describe, expect, it } from "vitest";
import { writeRule, writeRules } from "./write-rules";

describe("generated C++", () => {
  it.each([
    adamRule({ amsgrad: true, decay: "decoupled", smallBeta1: false }),
    nadamRule({ decay: "l2", smallBeta1: true }),
    everyOp,
  ])("of $name reads as hand-written", (rule) => {
    expect(writeRule(rule)).toMatchSnapshot();
  });

  it("has one function and one row for rules that compute the same", () => {
    const { functions, hashes } = writeRules([everyOp, { ...everyOp, name: "twin" }]);
    expect(functions.match(/^OPT_INLINE void rule_/gm)).toHaveLength(1);
    expect(hashes.trim().split("\n")).toHaveLength(1);
  });

  it("numbers functions and hashes alike", () => {
    const { functions, hashes } = writeRules(builtRules);
    const rows = [...functions.matchAll(/\{rule_(\w+)<float>/g)].map(([, hash]) => hash);
    expect([...hashes.matchAll(/"(\w+)"/g)].map(([, hash]) => hash)).toEqual(rows);
    expect(rows.length).toBeGreaterThan(30);
  });
});
