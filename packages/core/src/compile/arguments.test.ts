// "Other values are part of the signature": a call has the result of its own arguments, whatever the calls before it had.
import { beforeAll, expect, it, vi } from "vitest";
import { compile, init, type Tensor, tensor } from "../index";

await init("js"); // loads the passes

beforeAll(() => {
  const warn = vi.spyOn(console, "warn").mockReturnValue(); // of many traces
  return () => warn.mockRestore();
});

/** Values that are taken for each other where they are compared, printed or joined carelessly. */
const LEAVES = [0, -0, 1, "1", "0", "-0", true, "true", null, undefined, "null", "", ",", "a", 0.1, Number.NaN];
const POOLS: Readonly<Record<string, readonly unknown[]>> = {
  leaves: LEAVES,
  "in lists": LEAVES.map((leaf) => [leaf]),
  "in objects": LEAVES.map((leaf) => ({ a: leaf })),
  "in lists of objects": LEAVES.map((leaf) => [1, { b: [leaf] }]),
  trees: [
    [],
    [[]],
    {},
    "[]",
    "{}",
    [","],
    ["", ""],
    [[], []],
    { a: [] },
    { a: {} },
    { b: {} },
    [{ a: 1 }, 2],
    [{ a: 1, b: 2 }],
  ],
};

it.each(Object.entries(POOLS))("%s", (_, values) => {
  const placeOf = (value: unknown) => values.findIndex((one) => Object.is(one, value));
  const f = compile((x: Tensor, value: unknown) => x.add(placeOf(value)));
  for (const calls of [values, values.toReversed()])
    for (const value of calls) expect(f(tensor([0]), value).dataSync()[0]).toBe(placeOf(value));
});
