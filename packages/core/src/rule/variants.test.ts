import { expect, it } from "vitest";
import { fma, mul } from "../functions";
import { defineRule } from "./rule";
import { everyVariant, ruleByVariant } from "./variants";

const choices = { decay: ["none", "l2"], nesterov: [false, true] } as const;
const make = () =>
  ruleByVariant(choices, ({ decay, nesterov }) =>
    defineRule({
      name: `${decay}${nesterov}`,
      buffers: ["param", "grad"],
      scalars: ["s"],
      update: ({ param, grad }, { s }) => ({ param: decay === "l2" ? fma(s, grad, param) : mul(s, param) }),
    }),
  );

it("equal variants have one rule, whatever the order of their names", () => {
  const rule = make();
  expect(rule({ nesterov: true, decay: "l2" })).toBe(rule({ decay: "l2", nesterov: true }));
  expect(rule({ decay: "l2", nesterov: true })).not.toBe(rule({ decay: "l2", nesterov: false }));
});

it("every variant is listed, the last choice changing first", () => {
  const rule = make();
  const all = everyVariant(choices, rule);
  expect(all.map(({ name }) => name)).toEqual(["nonefalse", "nonetrue", "l2false", "l2true"]);
  expect(all[3]).toBe(rule({ decay: "l2", nesterov: true }));
});
