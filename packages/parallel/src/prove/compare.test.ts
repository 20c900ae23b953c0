import type { LedgerLine } from "@opt/checkpoint";
import fc from "fast-check";
import { expect, it } from "vitest";
import { firstDifference } from "./compare";

const line = fc.record({ step: fc.nat(3), a: fc.nat(1), b: fc.nat(1), loss: fc.nat(1) });

it("a part is the same where each of its lines is one of the whole run's", () => {
  const made = ({ step, a, b, loss }: { step: number; a: number; b: number; loss: number }) =>
    ({ step, tensors: { "model.a": `${a}`, "model.b": `${b}` }, values: { loss } }) as unknown as LedgerLine;
  fc.assert(
    fc.property(fc.array(line, { minLength: 1, maxLength: 6 }), fc.array(line, { maxLength: 3 }), (whole, part) => {
      const found = firstDifference(whole.map(made), part.map(made));
      const isThere = (one: (typeof part)[0]) => whole.some((other) => JSON.stringify(other) === JSON.stringify(one));
      expect(found?.step).toBe(part.find((one) => !isThere(one))?.step);
    }),
  );
});
