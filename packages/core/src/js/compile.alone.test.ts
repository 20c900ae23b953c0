// Generated functions against the interpreter, and what runs where a content security policy forbids to generate them.
import { Random, SPECIALS, seededBuffers, seededScalars } from "@opt/testkit";
import { afterEach, describe, expect, it, vi } from "vitest";
import { Expression, RULE_OPS, TRANSCENDENTAL_OPS } from "../rule/expression";
import { evaluateOp } from "../rule/interpret";
import { trace } from "../rule/program";
import { defineRule } from "../rule/rule";
import { interpretRule } from "../rule/stored";
import { abs, add, div, fma, less, maximum, minimum, mul, neg, sqrt, sub, where } from "../rule/symbols";
import type { ComputeDType, TypedArray } from "../values/dtype";
import { compileMap, compileRule } from "./compile";

const everyOp = defineRule({
  name: "everyOp",
  buffers: ["a", "b", "c", "d"],
  scalars: ["s", "u"],
  update: ({ a, b, c }, { s, u }) => {
    const shared = fma(a, sub(b, s), mul(c, 1 / 3));
    return {
      a: where(less(shared, c), maximum(a, b), minimum(shared, div(u, b))),
      b: add(neg(shared), sqrt(abs(c))),
      d: where(less(s, u), mul(s, -2.5), Number.NEGATIVE_INFINITY),
    };
  },
});

/** What `new Function` does under a policy without 'unsafe-eval'. */
function forbidGeneration(): void {
  vi.stubGlobal("Function", function reject() {
    throw new EvalError("Rejected to evaluate a string as JavaScript");
  });
}

afterEach(() => {
  vi.unstubAllGlobals();
});

describe.each(["generated", "interpreted"])("%s", (how) => {
  describe.each<ComputeDType>(["f32", "f64"])("%s", (dtype) => {
    it.each([0, 1, 1027])("rule over %d elements gives the interpreter's bits", (size) => {
      const expected = seededBuffers(everyOp, { size, seed: 1, dtype, specials: true });
      const actual = expected.map((array) => array.slice());
      for (const scalars of [seededScalars(everyOp, 2), [Number.NaN, -0], [1e300, 2 ** -1074]]) {
        if (how === "interpreted") forbidGeneration();
        compileRule(everyOp.program, dtype)(actual, scalars);
        interpretRule(everyOp.program, dtype, expected, scalars);
        actual.forEach((array, slot) => {
          expect(array, everyOp.buffers[slot]).toAgreeWith(expected[slot]!);
        });
      }
    });

    it.each([...RULE_OPS, ...TRANSCENDENTAL_OPS].filter((op) => op !== "less"))(
      "map of %s gives its definition's bits, strided",
      (op) => {
        const random = new Random(4);
        const make = (length: number): TypedArray =>
          dtype === "f32" ? new Float32Array(length) : new Float64Array(length);
        const inputs = [0, 1, 2].map(() => make(64).map(() => random.pick(SPECIALS[dtype])));
        const buffer = (slot: number) => new Expression("buffer", [], slot);
        const operands = [buffer(0), buffer(1), buffer(2)];
        if (op === "select") operands[0] = new Expression("less", [buffer(0), buffer(1)]);
        const program = trace(["a", "b", "c"], [], [{ slot: 0, expression: new Expression(op, operands) }]);
        if (how === "interpreted") forbidGeneration();
        const out = make(24);
        compileMap(program, dtype)(inputs, [3, 5, 7], [2, 0, 1], out, 4, 20, []);
        for (let i = 0; i < 20; i++) {
          const [a, b, c] = [inputs[0]![3 + 2 * i]!, inputs[1]![5]!, inputs[2]![7 + i]!];
          expect(out[4 + i]).toAgreeWith(evaluateOp(op, dtype, op === "select" ? Number(a < b) : a, b, c));
        }
        expect([...out.slice(0, 4)]).toEqual([0, 0, 0, 0]);
      },
    );
  });
});

it("does not hide other errors behind the interpreter", () => {
  vi.stubGlobal("Function", function fail() {
    throw new SyntaxError("Unexpected token");
  });
  expect(() => compileRule(everyOp.program, "f32")).toThrow(SyntaxError);
});
