import fc from "fast-check";
import { expect, it } from "vitest";
import { tensor } from "../create";
import { init } from "../device/registry";
import type { Tensor } from "../tensor/tensor";
import { matmul } from "./matmul";
import { transpose } from "./shape/shape";

await init("js");

const numbered = (shape: readonly number[]) =>
  tensor(
    Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => ((7 * i) % 11) - 5),
    { shape },
  );

it("transposes matrices as transpose does, and takes vectors as they are", () => {
  const extent = fc.integer({ min: 1, max: 3 });
  const batch = fc.array(fc.constantFrom(1, 2), { maxLength: 2 });
  const side = fc.record({ own: fc.option(extent), batch, isTransposed: fc.boolean() });
  fc.assert(
    fc.property(extent, side, side, (k, left, right) => {
      const turned = ({ own, isTransposed }: typeof left, x: Tensor) =>
        own !== null && isTransposed ? transpose(x) : x;
      const a = numbered(left.own === null ? [k] : [...left.batch, left.own, k]);
      const b = numbered(right.own === null ? [k] : [...right.batch, k, right.own]);
      const [givenA, givenB] = [turned(left, a), turned(right, b)];
      const y = matmul(givenA, givenB, { transposeA: left.isTransposed, transposeB: right.isTransposed });
      const expected = matmul(a, b);
      expect([y.shape, y.tolist()]).toEqual([expected.shape, expected.tolist()]);
    }),
    { numRuns: 200, seed: 48 },
  );
});
