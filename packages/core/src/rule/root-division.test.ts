import { SPECIALS } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import type { Expression } from "./expression";
import { interpret } from "./interpret";
import { multipliedRoots } from "./root-division";
import { defineRule } from "./rule";
import { add, div, mul, sqrt, sub } from "./symbols";

const ruleOf = (update: (x: Expression, d: Expression, e: Expression) => Expression) =>
  defineRule({
    name: "tried",
    buffers: ["x", "out"],
    scalars: ["d", "e"],
    update: ({ x }, h) => ({ out: update(x, h.d, h.e) }),
  }).program;

const ops = ({ nodes }: ReturnType<typeof ruleOf>) => nodes.map(({ op, uniform }) => (uniform ? `${op} once` : op));

describe("divisions of roots by scalars", () => {
  it("become products with a reciprocal that is computed once", () => {
    const { program, divisors } = multipliedRoots(ruleOf((x, d, e) => add(div(sqrt(x), e), div(d, x))));
    expect(divisors).toEqual([1]);
    expect(ops(program).filter((op) => op.startsWith("div"))).toEqual(["div once", "div"]);
  });

  it.each<[string, Parameters<typeof ruleOf>[0]]>([
    ["what is no root", (x, d) => div(x, d)],
    ["what is no scalar", (x, d, e) => div(sqrt(x), mul(d, e))],
    ["the root itself", (x, d) => div(d, sqrt(x))],
  ])("do not touch %s", (_, update) => {
    const before = ruleOf(update);
    expect(multipliedRoots(before)).toEqual({ program: before, divisors: [] });
  });

  it("change no bit of special values either", () => {
    const before = ruleOf((x, d, e) => sub(div(sqrt(x), d), div(sqrt(mul(x, 3)), e)));
    const run = (program: typeof before, scalars: readonly number[]) => {
      const values = [Float32Array.from(SPECIALS.f32), new Float32Array(SPECIALS.f32.length)];
      const store = (slot: number, i: number, value: number) => {
        values[slot]![i] = value;
      };
      interpret(program, "f32", values, scalars, store, 0, SPECIALS.f32.length);
      return values[1]!;
    };
    for (const scalars of [
      [0.1, 1],
      [2 ** -39, 2 - 2 ** -23],
    ]) {
      expect(run(multipliedRoots(before).program, scalars)).toEqual(run(before, scalars));
    }
  });
});
