// What every variant compiles to: a change of a rule shows here as a change of text and hash.
import { writeRuleLoop } from "@opt/core/backend";
import { describe, expect, it } from "vitest";
import { sgdRules } from "./rule";

describe.each(sgdRules)("$name", (rule) => {
  it("is written out as JavaScript", () => {
    expect(`// ${rule.hash}\n${writeRuleLoop(rule.program, "f32")}`).toMatchSnapshot();
  });
});

it("every variant is another rule", () => {
  expect(new Set(sgdRules.map(({ hash }) => hash)).size).toBe(sgdRules.length);
  expect(new Set(sgdRules.map(({ name }) => name)).size).toBe(sgdRules.length);
});
