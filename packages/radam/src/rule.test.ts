// What every variant compiles to: a change of a rule shows here as a change of text and hash.
import { writeRuleLoop } from "@opt/core/backend";
import { describe, expect, it } from "vitest";
import { radamRules } from "./rule";

describe.each(radamRules)("$name", (rule) => {
  it("is written out as JavaScript", () => {
    expect(`// ${rule.hash}\n${writeRuleLoop(rule.program, "f32")}`).toMatchSnapshot();
  });
});

it("every variant is another rule", () => {
  expect(new Set(radamRules.map(({ hash }) => hash)).size).toBe(radamRules.length);
  expect(new Set(radamRules.map(({ name }) => name)).size).toBe(radamRules.length);
});
