/** A rank hands over what the layout says it holds, and nothing else. */
import fc from "fast-check";
import { expect, it } from "vitest";
import type { LocalTensor } from "../../format/tensors";
import { checkSlices } from "./agreement";

it("of any length over any ranks, some of which hold nothing", () => {
  const rows = fc.array(fc.nat(3), { minLength: 1, maxLength: 3 });
  const given = fc.tuple(fc.nat(3), fc.integer({ min: 1, max: 2 }));
  fc.assert(
    fc.property(rows, given, fc.nat(2), (held, shape, one) => {
      const rank = one % held.length;
      const begins = held.map((_, i) => held.slice(0, i).reduce((a, b) => a + b, 0));
      const boxes = held.map((length, i) => (length === 0 ? [] : [{ offset: [begins[i]!, 0], size: [length, 2] }]));
      const layout = { mesh: { shape: [held.length], axes: ["rank"] }, tensors: { w: { boxes } } };
      const tensor = { name: "w", dtype: "F32" as const, role: "param" as const };
      const whole = { ...tensor, shape: [held.reduce((a, b) => a + b), 2] };
      const check = () => checkSlices(layout, [whole], [{ ...tensor, shape }] as unknown as LocalTensor[], rank);
      // Of nothing the other extents are no matter.
      if (held[rank] === 0 ? shape[0] === 0 : String(shape) === String([held[rank], 2])) check();
      else expect(check).toThrow(expect.objectContaining({ code: "BAD_SHAPE" }));
    }),
    { seed: 1, numRuns: 300 },
  );
});
