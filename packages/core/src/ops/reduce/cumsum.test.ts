import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../../testing/fake-backend";
import { cumprod, cumsum, noGrad, prod, type Shape, sum, tensor } from "../../index";

describe("running sums have memory of their own", () => {
  it.each<[Shape, number]>([
    [[1], 0],
    [[1, 3], 0],
    [[3, 1], 1],
    [[3], 0],
  ])("of %j along %d", (shape, axis) => {
    const values = Array.from({ length: shape.reduce((a, b) => a * b) }, (_, i) => i + 1);
    const x = tensor(values, { shape, requiresGrad: true });
    const doubled = x.mul(2);
    const sums = noGrad(() => cumsum(doubled, axis));
    noGrad(() => sums.set(sums.mul(0)));
    expect(doubled.reshape([values.length]).tolist()).toEqual(values.map((value) => 2 * value));
    doubled.sum().backward();
  });
});

// The other one's memory is not the host's: it adds in rounds.
it.each([
  ["js", undefined],
  ["a device of its own memory", new FakeDevice()],
] as const)("sums and products of i32 are modulo 2^32 on %s", (_, device) => {
  const word = (x: bigint) => Number(BigInt.asIntN(32, x));
  fc.assert(
    fc.property(fc.array(fc.integer(), { minLength: 1, maxLength: 6 }), (list) => {
      const x = tensor(Int32Array.from(list), { ...(device && { device }) });
      const upTo = (combine: (a: bigint, b: bigint) => bigint) =>
        list.map((_, i) =>
          word(
            list
              .slice(0, i + 1)
              .map(BigInt)
              .reduce(combine),
          ),
        );
      const [sums, products] = [upTo((a, b) => a + b), upTo((a, b) => a * b)];
      expect([cumsum(x, 0).tolist(), cumprod(x, 0).tolist()]).toEqual([sums, products]);
      expect([sum(x).tolist(), prod(x).tolist()]).toEqual([sums.at(-1), products.at(-1)]);
    }),
    { numRuns: 40 },
  );
});
