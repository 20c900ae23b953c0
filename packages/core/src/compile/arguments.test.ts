// "Other values are part of the signature": a call has the result of its own arguments, whatever the calls before it had.

import fc from "fast-check";
import { expect, it, vi } from "vitest";
import { compile, init, type Tensor, tensor } from "../index";

await init("js"); // loads the passes

/** Values that are taken for each other where they are compared, printed or joined carelessly. */
const leaf = fc.constantFrom<unknown>(
  0,
  -0,
  1,
  "1",
  "0",
  "-0",
  true,
  "true",
  null,
  undefined,
  "null",
  "",
  ",",
  "a",
  0.1,
);
const value = fc.oneof(
  leaf,
  fc.array(leaf, { maxLength: 2 }),
  fc.record({ a: leaf }, { noNullPrototype: true }),
  fc.record({ b: fc.array(leaf, { maxLength: 2 }) }, { noNullPrototype: true }),
  fc.array(fc.array(leaf, { maxLength: 1 }), { maxLength: 2 }),
);

/** A number that tells values apart. */
function numberOf(given: unknown): number {
  const text = JSON.stringify(given, (_, x) =>
    x === undefined ? "undefined value" : Object.is(x, -0) ? "minus zero" : x,
  );
  return [...(text + typeof given)].reduce((sum, letter) => (31 * sum + letter.charCodeAt(0)) % 65_521, 7);
}

it("as the function itself", () => {
  const warn = vi.spyOn(console, "warn").mockReturnValue(); // of many traces
  fc.assert(
    fc.property(fc.array(fc.tuple(value, value), { minLength: 2, maxLength: 8 }), (calls) => {
      const f = compile((x: Tensor, a: unknown, b: unknown) => x.mul(numberOf(a)).add(numberOf(b) / 2));
      for (const [a, b] of [...calls, ...calls])
        expect(f(tensor([2]), a, b).dataSync()[0]).toBe(2 * numberOf(a) + numberOf(b) / 2);
      f.dispose();
    }),
    { numRuns: 40 },
  );
  warn.mockRestore();
});
