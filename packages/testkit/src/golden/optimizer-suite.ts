/** The tests that every optimizer's package has: its options, its rules, and PyTorch's and optax's numbers where they have it. */
import { parameter } from "@opt/core";
import { describe, expect, it } from "vitest";
import { expectCode } from "../expect-code";
import { isOptimizerClass, isRuleList, type OptimizerClass } from "./optimizer";
import { goldenSuite } from "./suite";
import { wholeRunsSuite } from "./whole-runs";

/** The options of a class. */
export interface OptionTable {
  /** Of a group that names none: the library's or the paper's. */
  readonly defaults: Readonly<Record<string, unknown>>;
  /** By option: values that are rejected, also of options that the class lacks. */
  readonly wrong: Readonly<Record<string, readonly unknown[]>>;
}

/** Registers the tests. `exported`: all that the package exports; `options` by class. */
export function optimizerSuite(
  exported: Readonly<Record<string, unknown>>,
  options: Readonly<Record<string, OptionTable>>,
): void {
  const classes = Object.fromEntries(
    Object.entries(exported).filter((each): each is [string, OptimizerClass] => isOptimizerClass(each[1])),
  );
  goldenSuite({ name: "js", optimizers: classes });
  wholeRunsSuite(classes);

  it("lists the options of each class", () =>
    expect(Object.keys(options)).toEqual(expect.arrayContaining(Object.keys(classes))));
  describe.each(Object.entries(options))("options of %s", (name, { defaults, wrong }) => {
    const Optimizer = exported[name] as new (...args: unknown[]) => { groups: Record<string, unknown>[] };
    const w = parameter([[1]]);

    it("have these defaults", () => {
      const { params, names, ...own } = new Optimizer([w]).groups[0]!;
      expect(own).toEqual(defaults);
    });

    const rows = Object.entries(wrong).flatMap(([option, values]) => values.map((value) => ({ [option]: value })));
    it.each(rows)("reject %o, for all and for a group", (option) => {
      expectCode("BAD_ARGUMENT", () => new Optimizer([w], option));
      expectCode("BAD_ARGUMENT", () => new Optimizer([{ params: [w], ...option }]));
    });
  });

  const lists = Object.values(exported).filter(isRuleList);
  it.each(lists)("every variant is another rule", (...rules) => {
    expect(new Set(rules.map(({ hash }) => hash)).size).toBe(rules.length);
    expect(new Set(rules.map(({ name }) => name)).size).toBe(rules.length);
  });
}
