/** The tests that every optimizer's package has: PyTorch's numbers where PyTorch has it, and the text of its rules. */
import type { Rule } from "@opt/core";
import { writeRuleLoop } from "@opt/core/backend";
import { describe, expect, it } from "vitest";
import { isOptimizerClass, type OptimizerClass } from "./optimizer";
import { goldenSuite } from "./suite";

/** Registers the tests. `exported`: all that the package exports. */
export function optimizerSuite(exported: Readonly<Record<string, unknown>>): void {
  const classes = Object.entries(exported).filter((each): each is [string, OptimizerClass] =>
    isOptimizerClass(each[1]),
  );
  goldenSuite({ name: "js", optimizers: Object.fromEntries(classes) });

  const lists = Object.values(exported).filter((value): value is Rule[] => Array.isArray(value));
  // A change of a rule shows in the snapshot as a change of text and hash.
  describe.each(lists.flat())("$name", (rule) => {
    it("is written out as JavaScript", () => {
      expect(`// ${rule.hash}\n${writeRuleLoop(rule.program, "f32")}`).toMatchSnapshot();
    });
  });
  it.each(lists)("every variant is another rule", (...rules) => {
    expect(new Set(rules.map(({ hash }) => hash)).size).toBe(rules.length);
    expect(new Set(rules.map(({ name }) => name)).size).toBe(rules.length);
  });
}
