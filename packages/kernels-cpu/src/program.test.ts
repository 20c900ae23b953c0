import { add, defineRule, mul } from "@opt/core";
import type { Node, Program } from "@opt/core/backend";
import { expect, it } from "vitest";
import { OP_NUMBER } from "./numbers";
import { encodeProgram } from "./program";

const buffer = (slot: number): Node => ({ op: "buffer", args: [], value: slot, uniform: false });
const op = (name: Node["op"], ...args: number[]): Node => ({ op: name, args, value: 0, uniform: false });

it("sends a map's result straight to its output", () => {
  const program: Program = {
    buffers: ["a", "b"],
    scalars: [],
    nodes: [buffer(0), buffer(1), op("mul", 0, 1), op("sqrt", 2)],
    outputs: [{ slot: 0, node: 3 }],
  };
  // Places: buffers 0 and 1, the output 2, one register 3.
  const header = [3, 0, 1, 0, 2, 0];
  const code = [OP_NUMBER.mul, 3, 0, 1, 0, OP_NUMBER.sqrt, 2, 3, 3, 3];
  expect([...encodeProgram(program, 3, [2])]).toEqual([...header, ...code]);
});

it("keeps old values that another result overwrites", () => {
  const swap = defineRule({
    name: "swap",
    buffers: ["left", "right"],
    scalars: [],
    update: ({ left, right }) => ({ left: right, right: left }),
  });
  const code = [...encodeProgram(swap.program, 2, [0, 1])];
  expect(code.slice(0, 6)).toEqual([2, 0, 2, 0, 2, 2]);
  expect(code.slice(-4)).toEqual([0, 2, 1, 3]);
});

it("reuses registers after their last use", () => {
  const chain = Array.from({ length: 20 }, (_, n) => op("neg", n === 0 ? 0 : n));
  const program: Program = {
    buffers: ["a"],
    scalars: [],
    nodes: [buffer(0), ...chain],
    outputs: [{ slot: 0, node: 20 }],
  };
  expect(encodeProgram(program, 2, [1])[2]).toBeLessThanOrEqual(2);
});

it("computes what no buffer enters once", () => {
  const rule = defineRule({
    name: "scaled",
    buffers: ["x"],
    scalars: ["s"],
    update: ({ x }, { s }) => ({ x: mul(x, add(s, 3)) }),
  });
  const [buffers, uniforms, , uniformCount, elementCount] = encodeProgram(rule.program, 1, [0]);
  expect([buffers, uniforms, uniformCount, elementCount]).toEqual([1, 3, 2, 1]);
});
