import { expect, it } from "vitest";
import { interpret } from "./interpret";
import { defineRule } from "./rule";
import { add } from "./symbols";

it("reads each buffer where its index says", () => {
  const { program } = defineRule({
    name: "sum",
    buffers: ["param", "grad"],
    scalars: [],
    update: ({ param, grad }) => ({ param: add(param, grad) }),
  });
  const buffers = [Float64Array.of(1, 2, 3), Float64Array.of(10, 20)];
  const stored: number[] = [];
  const store = (_slot: number, i: number, value: number) => {
    stored[i] = value;
  };
  interpret(program, "f64", buffers, [], store, 0, 3, (slot, i) => (slot === 0 ? 2 - i : i % 2));
  expect(stored).toEqual([13, 22, 11]);
});
