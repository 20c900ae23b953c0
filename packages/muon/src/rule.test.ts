// What every rule compiles to: a change of a rule shows here as a change of text and hash.
import { writeRuleLoop } from "@opt/core/backend";
import { describe, expect, it } from "vitest";
import { muonRules } from "./rule";

describe.each(muonRules)("$name", (rule) => {
  it("is written out as JavaScript", () => {
    expect(`// ${rule.hash}\n${writeRuleLoop(rule.program, "f32")}`).toMatchSnapshot();
  });
});

it("every variant is another rule", () => {
  expect(new Set(muonRules.map(({ hash }) => hash)).size).toBe(muonRules.length);
  expect(new Set(muonRules.map(({ name }) => name)).size).toBe(muonRules.length);
});
