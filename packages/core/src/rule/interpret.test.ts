import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import type { Op } from "./expression";
import { evaluateOp } from "./interpret";
import { defineRule } from "./rule";
import { interpretRule } from "./stored";
import { less, sub, where } from "./symbols";

const inf = Number.POSITIVE_INFINITY;
const nan = Number.NaN;
const MAX32 = 2 ** 128 - 2 ** 104;

/** Op, operands, result in f32, result in f64 where it differs. */
const VALUES: readonly [Op, readonly number[], number, number?][] = [
  ["add", [1, 2 ** -24], 1, 1 + 2 ** -24],
  ["add", [-0, -0], -0],
  ["add", [0, -0], 0],
  ["add", [inf, -inf], nan],
  ["add", [MAX32, MAX32], inf, 2 * MAX32],
  ["sub", [1, 1], 0],
  ["sub", [-0, 0], -0],
  ["mul", [0, -1], -0],
  ["mul", [0, inf], nan],
  ["mul", [2 ** -100, 2 ** -100], 0, 2 ** -200],
  ["div", [1, 3], Math.fround(1 / 3), 1 / 3],
  ["div", [1, -0], -inf],
  ["div", [0, 0], nan],
  ["neg", [0], -0],
  ["neg", [nan], nan],
  ["abs", [-0], 0],
  ["abs", [-inf], inf],
  ["sqrt", [2], Math.fround(Math.SQRT2), Math.SQRT2],
  ["sqrt", [-0], -0],
  ["sqrt", [-1], nan],
  ["sqrt", [2 ** -149], Math.fround(2 ** -74.5), Math.sqrt(2 ** -149)],
  ["fma", [1 + 2 ** -12, 1 + 2 ** -12, -(1 + 2 ** -11)], 2 ** -24],
  ["fma", [MAX32, 2, -MAX32], MAX32],
  ["fma", [0, inf, 1], nan],
  ["max", [1, 2], 2],
  ["max", [-0, 0], -0],
  ["max", [0, -0], 0],
  ["max", [nan, 1], nan],
  ["max", [1, nan], 1],
  ["min", [1, 2], 1],
  ["min", [-0, 0], -0],
  ["min", [nan, 1], nan],
  ["min", [1, nan], 1],
  ["less", [1, 2], 1],
  ["less", [2, 2], 0],
  ["less", [nan, 2], 0],
  ["less", [-0, 0], 0],
  ["select", [1, 2, 3], 2],
  ["select", [0, 2, 3], 3],
  ["exp", [-inf], 0],
  ["exp", [0], 1],
  ["log", [0], -inf],
  ["log", [-1], nan],
  ["tanh", [inf], 1],
  ["tanh", [-0], -0],
  ["erf", [-inf], -1],
  ["sin", [inf], nan],
  ["cos", [0], 1],
  ["pow", [1, nan], 1],
  ["pow", [-1, -inf], 1],
  ["pow", [nan, 0], 1],
  ["pow", [-8, 1 / 3], nan],
  ["pow", [0, -1], inf],
  ["pow", [-0, -1], -inf],
];

describe.each(VALUES)("%s(%j)", (op, operands, f32, f64 = f32) => {
  it(`is ${f32}`, () => {
    const [a, b, c] = operands as [number, number?, number?];
    expect(evaluateOp(op, "f32", a, b, c)).toBe(f32);
    expect(evaluateOp(op, "f64", a, b, c)).toBe(f64);
  });
});

describe("interpretRule", () => {
  const exchange = defineRule({
    name: "exchange",
    buffers: ["a", "b"],
    scalars: ["s"],
    update: ({ a, b }, { s }) => ({ a: where(less(a, s), b, a), b: sub(a, 0.1) }),
  });

  it("reads old values only, and rounds scalars and constants to the dtype", () => {
    const [a, b] = [Float32Array.of(1, 5), Float32Array.of(7, 8)];
    interpretRule(exchange.program, "f32", [a, b], [1 + 2 ** -30]);
    expect([...a]).toEqual([1, 5]); // 1 is not less than the scalar, which is 1 in float32
    expect(b).toAgreeWith(Float32Array.of(Math.fround(1 - Math.fround(0.1)), Math.fround(5 - Math.fround(0.1))));
  });

  it("rejects another number of buffers or scalars", () => {
    expectCode("INTERNAL", () => interpretRule(exchange.program, "f32", [new Float32Array(1)], [1]));
    expectCode("INTERNAL", () =>
      interpretRule(exchange.program, "f32", [new Float32Array(1), new Float32Array(1)], []),
    );
  });
});
