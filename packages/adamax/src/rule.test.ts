// What every variant compiles to: a change of a rule shows here as a change of text and hash.
import { writeRuleLoop } from "@opt/core/backend";
import { describe, expect, it } from "vitest";
import { adamaxRules } from "./rule";

describe.each(adamaxRules)("$name", (rule) => {
  it("is written out as JavaScript", () => {
    expect(`// ${rule.hash}\n${writeRuleLoop(rule.program, "f32")}`).toMatchSnapshot();
  });
});

it("every variant is another rule", () => {
  expect(new Set(adamaxRules.map(({ hash }) => hash)).size).toBe(adamaxRules.length);
  expect(new Set(adamaxRules.map(({ name }) => name)).size).toBe(adamaxRules.length);
});
